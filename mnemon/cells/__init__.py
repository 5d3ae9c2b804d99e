"""Every memory architecture, one file each, behind one contract."""

from ._contract import BATCH_AXIS as BATCH_AXIS
from ._contract import AbstractCell as AbstractCell
from ._registry import CELLS as CELLS
from ._registry import CellEntry as CellEntry
from ._registry import cell_entry as cell_entry
from ._registry import cell_options as cell_options
from ._registry import count_parameters as count_parameters
from ._registry import fit_size as fit_size
from ._registry import make_cell as make_cell
from .dnc import DNC as DNC
from .gru import GRU as GRU
from .janet import JANET as JANET
from .lstm import LSTM as LSTM
from .nru import NRU as NRU
from .ntm import NTM as NTM
from .nutm import NUTM as NUTM
from .rnn import RNN as RNN
from .sam import SAM as SAM
from .sdnc import SDNC as SDNC
from .stack import Stack as Stack
