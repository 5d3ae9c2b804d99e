"""Every task, one file each, behind one contract."""

from ._contract import AbstractInteractive as AbstractInteractive
from ._contract import AbstractTask as AbstractTask
from ._contract import Episode as Episode
from ._registry import TASKS as TASKS
from ._registry import make_task as make_task
from ._registry import task_class as task_class
from ._registry import task_options as task_options
from .char_lm import CharLM as CharLM
from .copying import Copying as Copying
from .denoising import Denoising as Denoising
from .psmnist import PermutedMNIST as PermutedMNIST
from .stroke_mnist import StrokeMNIST as StrokeMNIST
from .variable_copying import VariableCopying as VariableCopying
