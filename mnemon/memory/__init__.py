"""What external memories are made of: pure functions on the arrays of one example.

A memory is a matrix [slots, word]. Weightings are [heads, slots]; a read is `weights @ memory`.
"""

from .allocation import allocation_weights as allocation_weights
from .allocation import retention as retention
from .allocation import sorted_allocation_weights as sorted_allocation_weights
from .allocation import update_usage as update_usage
from .content import content_weights as content_weights
from .content import cosine_similarity as cosine_similarity
from .content import oneplus as oneplus
from .discrete import Choice as Choice
from .discrete import attend as attend
from .discrete import choose as choose
from .discrete import entropy as entropy
from .discrete import gumbel_sigmoid as gumbel_sigmoid
from .discrete import gumbel_softmax as gumbel_softmax
from .discrete import log_probability as log_probability
from .discrete import most_likely as most_likely
from .discrete import sample as sample
from .discrete import straight_through as straight_through
from .links import follow_links as follow_links
from .links import mix_read_modes as mix_read_modes
from .links import update_links as update_links
from .links import update_precedence as update_precedence
from .lru import least_recently_used as least_recently_used
from .shifting import circular_shift as circular_shift
from .shifting import interpolate as interpolate
from .shifting import sharpen as sharpen
from .sparse import largest as largest
from .sparse import least_recent as least_recent
from .sparse import mark_accessed as mark_accessed
from .sparse import nearest as nearest
from .sparse import read_rows as read_rows
from .sparse import wipe_and_add as wipe_and_add
from .writing import erase_and_add as erase_and_add
