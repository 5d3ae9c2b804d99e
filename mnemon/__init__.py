"""mnemon: recurrent networks that remember."""

from .cells import AbstractCell as AbstractCell
from .unroll import Plan as Plan
from .unroll import Unrolled as Unrolled
from .unroll import choose_plan as choose_plan
from .unroll import unroll as unroll
