"""Real data: a catalogue with checksums, a folder or cache that holds the files, and readers."""

from ._catalogue import DATASETS as DATASETS
from ._catalogue import DataFile as DataFile
from ._catalogue import Dataset as Dataset
from ._catalogue import Form as Form
from ._store import DamagedData as DamagedData
from ._store import MissingData as MissingData
from ._store import available as available
from ._store import check as check
from ._store import data_folder as data_folder
from ._store import find as find
from ._store import get as get
