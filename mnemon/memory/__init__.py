"""What external memories are made of: pure functions on the arrays of one example.

A memory is a matrix [slots, word]. Weightings are [heads, slots]; a read is `weights @ memory`.
"""

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
from .lru import least_recently_used as least_recently_used
from .writing import erase_and_add as erase_and_add
