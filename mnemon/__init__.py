"""mnemon: recurrent networks that remember."""

from ._cores import use_cores as use_cores
from ._plan import Plan as Plan
from ._plan import choose_plan as choose_plan
from ._version import __version__ as __version__
from .cells import CELLS as CELLS
from .cells import AbstractCell as AbstractCell
from .cells import Stack as Stack
from .cells import count_parameters as count_parameters
from .cells import fit_size as fit_size
from .cells import make_cell as make_cell
from .model import Model as Model
from .model import make_model as make_model
from .tasks import TASKS as TASKS
from .tasks import AbstractTask as AbstractTask
from .tasks import Copying as Copying
from .tasks import Denoising as Denoising
from .tasks import VariableCopying as VariableCopying
from .tasks import make_task as make_task
from .training import evaluate as evaluate
from .training import fit as fit
from .training import make_optimizer as make_optimizer
from .unroll import Unrolled as Unrolled
from .unroll import unroll as unroll
