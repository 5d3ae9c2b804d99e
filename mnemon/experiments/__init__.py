"""Every table and figure of the literature, one file each."""

from ._contract import Arm as Arm
from ._contract import Experiment as Experiment
from ._contract import Job as Job
from ._contract import Preset as Preset
from ._contract import Training as Training
from ._estimate import estimate as estimate
from ._registry import EXPERIMENTS as EXPERIMENTS
from ._registry import get_experiment as get_experiment
from ._runner import reproduce as reproduce
from ._runner import run_experiment as run_experiment
