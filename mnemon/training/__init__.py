"""Objectives, optimisers, the trainer, checkpoints and runs."""

from ._stopping import Diverged as Diverged
from ._stopping import Interrupted as Interrupted
from .curriculum import CurriculumResult as CurriculumResult
from .curriculum import Lessons as Lessons
from .curriculum import graph_lessons as graph_lessons
from .curriculum import train_curriculum as train_curriculum
from .evaluation import evaluate as evaluate
from .fit import FitResult as FitResult
from .fit import fit as fit
from .objectives import AbstractObjective as AbstractObjective
from .objectives import Interactive as Interactive
from .objectives import Outcome as Outcome
from .objectives import Supervised as Supervised
from .optimizers import make_optimizer as make_optimizer
from .optimizers import optimizer_names as optimizer_names
from .reinforce import Reinforce as Reinforce
from .schedules import Schedule as Schedule
from .synthetic import SyntheticGradients as SyntheticGradients
