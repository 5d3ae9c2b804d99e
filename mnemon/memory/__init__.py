"""What external memories are made of: pure functions on the arrays of one example.

A memory is a matrix [slots, word]. Weightings are [heads, slots]; a read is `weights @ memory`.
"""

from .content import content_weights as content_weights
from .content import cosine_similarity as cosine_similarity
from .content import oneplus as oneplus
from .writing import erase_and_add as erase_and_add
