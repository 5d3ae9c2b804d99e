"""Every task, one file each, behind one contract."""

from ._contract import AbstractTask as AbstractTask
from ._contract import Episode as Episode
from ._registry import TASKS as TASKS
from ._registry import make_task as make_task
from ._registry import task_class as task_class
from ._registry import task_options as task_options
from .associative_recall import AssociativeRecall as AssociativeRecall
from .associative_retrieval import AssociativeRetrieval as AssociativeRetrieval
from .copying import Copying as Copying
from .denoising import Denoising as Denoising
from .dynamic_ngrams import DynamicNGrams as DynamicNGrams
from .ntm_copy import NTMCopy as NTMCopy
from .priority_sort import PrioritySort as PrioritySort
from .repeat_copy import RepeatCopy as RepeatCopy
from .seq2seq_retrieval import Seq2SeqRetrieval as Seq2SeqRetrieval
from .variable_copying import VariableCopying as VariableCopying
