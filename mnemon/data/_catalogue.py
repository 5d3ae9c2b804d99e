"""Every data set by name: files, sizes, checksums, licence, and where it comes from."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from ._strokes import from_archive


@dataclasses.dataclass(frozen=True)
class Form:
    """One way in which a file is packed and spread. All forms of a file hold the same content, but for bAbI's."""

    path: str  # below the data folder
    size: int  # bytes
    sha256: str
    urls: tuple[str, ...] = ()  # where it can be downloaded, mirrors included
    # From a download to the file, where what is public is not the file itself.
    make: Callable[[Path, Path], None] | None = None


@dataclasses.dataclass(frozen=True)
class DataFile:
    """A file of a data set, in one of several forms."""

    role: str  # what the tasks call it
    forms: tuple[Form, ...]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set."""

    name: str
    what: str
    licence: str
    how: str  # how to get it where there is no download
    files: tuple[DataFile, ...]


_MNIST_MIRRORS = ("https://storage.googleapis.com/cvdf-datasets/mnist", "https://ossci-datasets.s3.amazonaws.com/mnist")
_TUBE = "https://raw.githubusercontent.com/nicola/tubemaps/master/datasets"
_SICK = "https://raw.githubusercontent.com/brmson/dataset-sts/master/data/sts/sick2014"
_STROKES = "https://raw.githubusercontent.com/edwin-de-jong/mnist-digits-stroke-sequence-data"
_BABI = (
    "http://www.thespermwhale.com/jaseweston/babi/tasks_1-20_v1-2.tar.gz",
    "https://s3.amazonaws.com/text-datasets/babi_tasks_1-20_v1-2.tar.gz",
)
_SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"


def _mnist(role: str, name: str, public: tuple[int, str], repacked: tuple[int, str]) -> DataFile:
    """The circulated gzip file, or the same content packed anew (its checksum differs, its content does not)."""
    urls = tuple(f"{mirror}/{name}.gz" for mirror in _MNIST_MIRRORS)
    return DataFile(
        role,
        (
            Form(f"mnist/{name}.gz", *public, urls),
            Form(f"mnist/{name}.gz", *repacked),
        ),
    )


def _text(role: str, path: str, plain: tuple[int, str], packed: tuple[int, str], urls: tuple[str, ...] = ()):
    return DataFile(role, (Form(path, *plain, urls), Form(f"{path}.xz", *packed)))


def _plain(role: str, path: str, size: int, sha256: str, urls: tuple[str, ...] = ()) -> DataFile:
    return DataFile(role, (Form(path, size, sha256, urls),))


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "mnist",
            "handwritten digits, 60,000 and 10,000 images of 28 x 28 (LeCun, Cortes, Burges)",
            "commonly stated as CC BY-SA 3.0",
            "mnemon data get mnist",
            (
                _mnist(
                    "train-images",
                    "train-images-idx3-ubyte",
                    (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
                    (9719438, "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971"),
                ),
                _mnist(
                    "train-labels",
                    "train-labels-idx1-ubyte",
                    (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
                    (28857, "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203"),
                ),
                _mnist(
                    "test-images",
                    "t10k-images-idx3-ubyte",
                    (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
                    (1616508, "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be"),
                ),
                _mnist(
                    "test-labels",
                    "t10k-labels-idx1-ubyte",
                    (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
                    (4517, "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b"),
                ),
            ),
        ),
        Dataset(
            "mnist-strokes",
            "MNIST as pen strokes, 60,000 and 10,000 sequences of dx dy eos eod (de Jong 2016)",
            "CC BY-SA 3.0",
            "mnemon data get mnist-strokes",
            (
                DataFile(
                    "strokes",
                    (
                        Form(
                            "mnist_strokes/strokes.npz",
                            11374716,
                            "c00a9ddd7fa95b140b70e96039049b18c2bb3a99a727cd1302d3784edf8bb47f",
                            (f"{_STROKES}/bb08a2a9d7856dc0384916820cada5b3bf822510/sequences.tar.gz",),
                            from_archive,
                        ),
                        Form(
                            "mnist_strokes/strokes_int8.npz",
                            1607985,
                            "b614d2d3a2476c28a1bc8a5f799c132f220b851e73301c0dfffd0b9426685f85",
                        ),
                    ),
                ),
            ),
        ),
        Dataset(
            "ptb",
            "Penn Treebank, characters, Mikolov's version",
            "NOT free (LDC99T42): measure with it, never pass it on or quote it",
            "with an LDC licence, ptb.char.{train,valid,test}.txt of Mikolov's simple-examples.tgz, put in ptb/",
            (
                _text(
                    "train",
                    "ptb/ptb.char.train.txt",
                    (10034964, "e313d91425e06c4f0a8fb6e881dcce0c291f2a0e9f4dda54833069b122f91da9"),
                    (1205924, "5b4f2cd89787f2b45cda890fb49e18e10d2884a7a397a1aaf1e5f6b13e495316"),
                ),
                _text(
                    "valid",
                    "ptb/ptb.char.valid.txt",
                    (786084, "21661f63ec355085879458b6524644d4add5573541b4be14fb52ab2e2e995eb8"),
                    (113356, "b36f1170ea4980cb22aa1fae5e58405b80940d42dda5c16bf4f553a3730a7059"),
                ),
                _text(
                    "test",
                    "ptb/ptb.char.test.txt",
                    (884846, "1ef5607ac3c463b16e38bfe7900dd3bfc91de5a96e0f21e7eab5188b465b8ebe"),
                    (124980, "f925dabbf767c7cd8fde30ee77866e11c08bf48d0ef38044f30e75fd2567ef15"),
                ),
            ),
        ),
        Dataset(
            "shakespeare",
            "scenes of Shakespeare, 1,115,394 characters (karpathy/char-rnn)",
            "public domain",
            "mnemon data get shakespeare",
            (
                _text(
                    "text",
                    "text/tinyshakespeare.txt",
                    (1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),
                    (364404, "21b40ccf4999c004256d116655824719001352dbc22636354d9cd0c645d03a4a"),
                    (_SHAKESPEARE,),
                ),
            ),
        ),
        Dataset(
            "kjv",
            "King James Bible, 4,298,238 characters",
            "public domain",
            "the output of `bible -f` of Debian's bible-kjv for all books, as text/kjv_bible.txt",
            (
                _text(
                    "text",
                    "text/kjv_bible.txt",
                    (4298238, "30f329d5d06488b531d9264cef425422c28d1746b9088d5ab4b8b17156cfbd36"),
                    (999076, "776ebb840fe78b8e39e547c4ad0380575dfb1cb9947fad5113ff1e9e22e28fd9"),
                ),
            ),
        ),
        Dataset(
            "snli",
            "SNLI 1.0, 570,152 pairs of sentences with entailment labels (Bowman et al. 2015)",
            "CC BY-SA 4.0",
            "mnemon data get snli",
            (
                _plain(
                    "archive",
                    "snli/snli_1.0.zip",
                    94550081,
                    "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
                    ("https://nlp.stanford.edu/projects/snli/snli_1.0.zip",),
                ),
            ),
        ),
        Dataset(
            "snli-subset",
            "SNLI 1.0 with 21,605 training pairs; dev and test complete: NOT comparable with published numbers",
            "CC BY-SA 4.0",
            "rows gold_label, sentence1, sentence2 of SNLI; use snli for the whole set",
            (
                _text(
                    "train",
                    "snli/snli_1.0_train_SUBSET.compact.tsv",
                    (2519396, "7fb685954ab2f1f417051389e6e72f345657ab0343cf40a6ce772b800152ff30"),
                    (529380, "ca0db1a232f4526ea4b765477cd1a7e4461586617be0ee6df10a0597d60b39ad"),
                ),
                _text(
                    "valid",
                    "snli/snli_1.0_dev.compact.tsv",
                    (1212186, "a2c6760e9595a543ee48b467c8d3885625a394d5bf946f85ce7a45313bb6c8bc"),
                    (180084, "260d56e1035c5deb2f50ae14d567f8a10667f6a1a0357e22eec00a0f3ad834ab"),
                ),
                _text(
                    "test",
                    "snli/snli_1.0_test.compact.tsv",
                    (1204948, "4dc7b318c6174bb6ae6db551f1e06b1973653ac2c9e9d04ee633b3d9237b8333"),
                    (179996, "00cc9c6d5d161e4226749b340c0524880f228f5f24a8f0a2797e4bfac7115d79"),
                ),
            ),
        ),
        Dataset(
            "sick",
            "SICK, 9,927 pairs of sentences with entailment labels (SemEval-2014 task 1)",
            "CC BY-NC-SA 3.0",
            "mnemon data get sick",
            (
                _plain(
                    "train",
                    "sick/SICK_train.txt",
                    506243,
                    "266cf8047149bd1d68138dd30439f3122bff30069740ac6705bb6197d9f1b48e",
                    (f"{_SICK}/SICK_train.txt",),
                ),
                _plain(
                    "valid",
                    "sick/SICK_trial.txt",
                    57225,
                    "5a88cfb62f8c6bd2a3cce0f2421ba2cb8c2be5ab4a800f6f01e2c64aafb7db56",
                    (f"{_SICK}/SICK_trial.txt",),
                ),
                _plain(
                    "test",
                    "sick/SICK_test_annotated.txt",
                    559979,
                    "2b8aa806658d6fc23c6824c83776c2d4fee7556000817b5ec0f982861413b7d0",
                    (f"{_SICK}/SICK_test_annotated.txt",),
                ),
            ),
        ),
        Dataset(
            "babi",
            "bAbI v1-2 (Weston et al. 2015); repacked as tar.xz without the training file of task 3 of en-10k",
            "CC BY 3.0",
            "mnemon data get babi",
            (
                DataFile(
                    "archive",
                    (
                        Form(
                            "babi/tasks_1-20_v1-2.tar.gz",
                            15719851,
                            "0364ebde659f14d11bc21744516c5ec49d3d06cb692733f66680771244998898",
                            _BABI,
                        ),
                        Form(
                            "babi/tasks_1-20_v1-2_en_en-10k.tar.xz",
                            1789288,
                            "30655786c332f7ff23fdb07a04279b9768673732e8ca991ee2da463abc93eb31",
                        ),
                    ),
                ),
            ),
        ),
        Dataset(
            "london",
            "London Underground in the mid-2000s: 302 stations, 406 connections, 13 lines (nicola/tubemaps)",
            "ISC",
            "mnemon data get london",
            (
                _plain(
                    "connections",
                    "london_underground/london.connections.csv",
                    5113,
                    "a4eb232dfa07c6b591032c12c9df5a6c4a718f6e788cb8d5c9b298813752d810",
                    (f"{_TUBE}/london.connections.csv",),
                ),
                _plain(
                    "lines",
                    "london_underground/london.lines.csv",
                    502,
                    "e09a1c60226b80f213d8c0f89cd4f09da3b326139402dd365476c368f1e8265b",
                    (f"{_TUBE}/london.lines.csv",),
                ),
                _plain(
                    "stations",
                    "london_underground/london.stations.csv",
                    17233,
                    "5891d940113c9941d5a10e26f0d54c5b67abe9365834716600997d6e3177832a",
                    (f"{_TUBE}/london.stations.csv",),
                ),
            ),
        ),
    )
}
