"""Every task, one file each, behind one contract."""

from ._contract import AbstractInteractive as AbstractInteractive
from ._contract import AbstractTask as AbstractTask
from ._contract import Episode as Episode
from ._registry import TASKS as TASKS
from ._registry import make_task as make_task
from ._registry import task_class as task_class
from ._registry import task_options as task_options
from .babi import BAbI as BAbI
from .char_lm import CharLM as CharLM
from .copying import Copying as Copying
from .denoising import Denoising as Denoising
from .entailment import Entailment as Entailment
from .inference import Inference as Inference
from .psmnist import PermutedMNIST as PermutedMNIST
from .shortest_path import ShortestPath as ShortestPath
from .stroke_mnist import StrokeMNIST as StrokeMNIST
from .traversal import Traversal as Traversal
from .variable_copying import VariableCopying as VariableCopying
