"""The catalogue and the store: right files are found, wrong ones refused, downloads are whole or not there."""

import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
import warnings

import numpy as np
import pytest

from mnemon import cli
from mnemon.data import DATASETS, DamagedData, DataFile, Dataset, Form, MissingData, _store, check, find, get
from mnemon.data._read import BadFile, read_archive, read_idx, read_text
from mnemon.data._strokes import from_archive

CONTENT = bytes(range(256)) * 4000


class _Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT: whole, cut in the middle, or another file of the same length."""

    requests = 0  # since the server started

    def do_GET(self):
        type(self).requests += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.path == "/cut" or (self.path == "/cut-once" and self.requests == 1):
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(CONTENT[::-1] if self.path == "/foreign" else CONTENT)

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        _Handler.requests = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def one_file(monkeypatch):
    """A data set of one file, to be had from the given addresses."""

    def install(*urls: str) -> None:
        form = Form("toy/toy.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), urls)
        toy = Dataset("toy", "a toy", "none", "by hand", (DataFile("toy", (form,)),))
        monkeypatch.setitem(_store.DATASETS, "toy", toy)

    return install


def test_download_is_cached_and_checked(one_file, address, tmp_path):
    one_file(f"{address}/whole")
    (path,) = get("toy", tmp_path)
    assert path.read_bytes() == CONTENT
    one_file("http://127.0.0.1:9/nothing-listens-here")
    assert get("toy", tmp_path) == [path]


def test_cut_line_leaves_no_half_file(one_file, address, tmp_path):
    one_file(f"{address}/cut")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(MissingData, match="could not get"):
            get("toy", tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_next_mirror_after_a_cut_line(one_file, address, tmp_path):
    one_file(f"{address}/cut", f"{address}/whole")
    assert get("toy", tmp_path)[0].read_bytes() == CONTENT


def test_again_after_a_cut_line(one_file, address, tmp_path):
    one_file(f"{address}/cut-once")
    with pytest.raises(MissingData):
        get("toy", tmp_path)
    assert get("toy", tmp_path)[0].read_bytes() == CONTENT


def test_foreign_download_is_refused_with_both_checksums(one_file, address, tmp_path):
    one_file(f"{address}/foreign")
    expected, found = (hashlib.sha256(content).hexdigest() for content in (CONTENT, CONTENT[::-1]))
    with pytest.raises(MissingData, match=f"(?s){expected}.*{found}"):
        get("toy", tmp_path)
    assert not (tmp_path / "toy" / "toy.bin").exists()


@pytest.mark.parametrize("wrong", [CONTENT[:-1], CONTENT[:-1] + b"x", b""])
def test_wrong_file_is_refused_with_both_checksums(one_file, tmp_path, wrong):
    one_file()
    path = tmp_path / "toy" / "toy.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert find("toy", "toy", tmp_path) == path
    path.write_bytes(wrong)
    expected, found = hashlib.sha256(CONTENT).hexdigest(), hashlib.sha256(wrong).hexdigest()
    with pytest.raises(DamagedData, match=f"expected sha256 {expected}, found {found}"):
        find("toy", "toy", tmp_path)
    assert check("toy", tmp_path)[0] == {
        "data": "toy",
        "file": str(path),
        "state": "damaged",
        "expected": expected,
        "found": found,
    }


def test_damaged_file_is_replaced_by_a_download(one_file, address, tmp_path):
    one_file(f"{address}/whole")
    path = tmp_path / "toy" / "toy.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:99])
    assert get("toy", tmp_path)[0].read_bytes() == CONTENT


def _archive(path, files: dict[str, str | bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))


def _one_hot(digit: int) -> str:
    return " ".join(str(int(n == digit)) for n in range(10)) + " 1 0 0 0\n"


STROKES: dict[str, str | bytes] = {
    "sequences/trainimg-1-inputdata.txt": "7 8 0 0\n0 0 1 1\n",
    "sequences/trainimg-1-targetdata.txt": _one_hot(4),
    "sequences/trainimg-0-inputdata.txt": "5 6 0 0\n-1 1 0 0\n0 0 1 1\n",
    "sequences/trainimg-0-targetdata.txt": _one_hot(9) + _one_hot(9),
    "sequences/trainimg-0-points.txt": "col,row\n5,6\n",
    "sequences/testimg-0-inputdata.txt": "3 3 1 1\n",
    "sequences/testimg-0-targetdata.txt": _one_hot(0),
}


def test_strokes_are_made_from_the_public_archive(monkeypatch, tmp_path):
    """The digits in their order, whatever that of the archive; the same bytes each time; other content is refused."""
    _archive(tmp_path / "sequences.tar.gz", STROKES)
    from_archive(tmp_path / "sequences.tar.gz", tmp_path / "strokes.npz")
    with np.load(tmp_path / "strokes.npz", allow_pickle=False) as arrays:
        assert arrays["train_seq"].tolist() == [[5, 6, 0, 0], [-1, 1, 0, 0], [0, 0, 1, 1], [7, 8, 0, 0], [0, 0, 1, 1]]
        assert (arrays["train_len"].tolist(), arrays["train_label"].tolist()) == ([3, 2], [9, 4])
        assert (arrays["test_seq"].tolist(), arrays["test_label"].tolist()) == ([[3, 3, 1, 1]], [0])
        kinds = {name: array.dtype.name for name, array in arrays.items()}
    assert kinds["train_seq"] == "int8"
    content = (tmp_path / "strokes.npz").read_bytes()
    right = hashlib.sha256(content).hexdigest()

    def fetched(url, known_hash, fname, path) -> str:
        """As pooch does it, from a file of this machine."""
        assert known_hash is None
        target = f"{path}/{fname}"
        with open(url, "rb") as source, open(target, "wb") as copy:
            copy.write(source.read())
        return target

    monkeypatch.setattr("pooch.retrieve", fetched)

    def install(sha256: str) -> None:
        form = Form("toy/strokes.npz", len(content), sha256, (str(tmp_path / "sequences.tar.gz"),), from_archive)
        monkeypatch.setitem(
            _store.DATASETS, "toy", Dataset("toy", "a toy", "none", "by hand", (DataFile("strokes", (form,)),))
        )

    install("0" * 64)
    with pytest.raises(MissingData, match=f"(?s){'0' * 64}.*made of it has sha256 {right}"):
        get("toy", tmp_path / "data")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    install(right)
    (path,) = get("toy", tmp_path / "data")
    assert path.read_bytes() == content
    assert find("toy", "strokes", tmp_path / "data") == path
    assert [path.name for path in (tmp_path / "data" / "toy").iterdir()] == ["strokes.npz"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sequences/trainimg-0-inputdata.txt": "1 2 3\n"}, "has 3 numbers, wanted four a row"),
        ({"sequences/trainimg-3-inputdata.txt": "1 2 0 0\n"}, "train: 3 and 2 files"),
    ],
)
def test_an_archive_without_all_strokes_is_refused(tmp_path, change, message):
    _archive(tmp_path / "sequences.tar.gz", STROKES | change)
    with pytest.raises(BadFile, match=message):
        from_archive(tmp_path / "sequences.tar.gz", tmp_path / "strokes.npz")
    assert not (tmp_path / "strokes.npz").exists()


def test_files_of_a_mac_are_not_taken_for_text(tmp_path):
    _archive(tmp_path / "a.tar.gz", {"tasks/en/qa1_train.txt": "1 a", "tasks/en/._qa1_train.txt": b"\xff\x00"})
    assert read_archive(tmp_path / "a.tar.gz", "en") == {"qa1_train.txt": "1 a"}


def test_missing_file_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMON_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="mnemon data get mnist"):
        find("mnist", "train-images")
    with pytest.raises(MissingData, match="LDC licence"):
        get("ptb")


def test_command(capsys, tmp_path, one_file):
    cli.main(["data", "list", "--data", str(tmp_path), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == set(DATASETS)
    assert {row["here"] for row in rows} == {"no"}
    one_file()
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.bin").write_bytes(b"other")
    with pytest.raises(SystemExit, match="2"):
        cli.main(["data", "check", "toy", "--data", str(tmp_path), "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert row["state"] == "damaged"
    with pytest.raises(SystemExit, match="2"):
        cli.main(["data", "check", "toy", "mnist", "--data", str(tmp_path)])
    shown = capsys.readouterr().out
    assert row["found"][:8] in shown  # checksums where one has to look, folded in their column
    assert DATASETS["mnist"].files[0].forms[0].sha256[:8] not in shown
    for wrong, words in ((["data", "gte"], "did you mean 'get'"), (["data", "get", "mnits"], "did you mean 'mnist'")):
        with pytest.raises(SystemExit):
            cli.main(wrong)
        assert words in capsys.readouterr().err


def test_readers_name_file_and_line(tmp_path):
    text = tmp_path / "a.txt"
    text.write_bytes(b"fine\nfine\n\xff\n")
    with pytest.raises(BadFile, match=r"a\.txt, line 3: byte 0xff is not UTF-8"):
        read_text(text)
    text.write_bytes(b"")
    with pytest.raises(BadFile, match="is empty"):
        read_text(text)
    image = tmp_path / "b.gz"
    image.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x05abc"))
    with pytest.raises(BadFile, match=r"holds 3 values, its header says \(5,\)"):
        read_idx(image)
    image.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x03abc"))
    np.testing.assert_array_equal(read_idx(image), [97, 98, 99])
    image.write_bytes(image.read_bytes()[:-9])
    with pytest.raises(BadFile, match="cannot be unpacked"):
        read_idx(image)
