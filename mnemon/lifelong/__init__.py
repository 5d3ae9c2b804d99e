"""Learning tasks one after the other: memories against forgetting, networks that grow, and how to measure both."""

from .curriculum import Curriculum as Curriculum
from .curriculum import learn as learn
from .ewc import EWC as EWC
from .ewc import Anchor as Anchor
from .expansion import Widening as Widening
from .expansion import condition_numbers as condition_numbers
from .expansion import deepen as deepen
from .expansion import largest_difference as largest_difference
from .expansion import widen as widen
from .expansion import widen_optimizer as widen_optimizer
from .expansion import zero_sum_noise as zero_sum_noise
from .gem import GEM as GEM
from .gem import AverageGEM as AverageGEM
from .gem import project as project
from .gem import project_average as project_average
from .gem import remembered as remembered
from .memory import EpisodicMemory as EpisodicMemory
from .memory import Recent as Recent
from .metrics import average_accuracy as average_accuracy
from .metrics import backward_transfer as backward_transfer
from .metrics import current_accuracy as current_accuracy
from .metrics import forward_transfer as forward_transfer
from .metrics import future_accuracy as future_accuracy
from .metrics import levels_cleared as levels_cleared
from .metrics import previous_accuracy as previous_accuracy
