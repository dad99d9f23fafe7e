"""Sample texts from a language model under a Constraint. All samplers share one signature and return weighted draws.

`SAMPLERS` lists the samplers and the guarantees of each. `core/` holds the code that they share, `research/` exact
computations that are feasible for small models only.
"""

from __future__ import annotations

from .canonical_tokens import Canonical
from .checkers import Checker, Stepwise, ValidatorChecker
from .core.language_model import LanguageModel
from .core.masked_sampling import Proposal
from .core.results import Draw, Draws
from .critics import Critic, Guide
from .estimation import Estimate, estimate, estimate_from
from .learned_twist.table_files import load_table, save_table
from .learned_twist.value_table import ValueTable
from .research.hidden_markov import Hmm
from .research.ngram import NGram
from .sampler_table import SAMPLERS, Sampler, add_post_filter, draw
from .sampling_target import SamplingTarget
from .success_trie import SuccessTrie, trie_key

__all__ = [
    "SAMPLERS", "Canonical", "Checker", "Critic", "Draw", "Draws", "Estimate", "Guide", "Hmm", "LanguageModel", "NGram",
    "Proposal", "Sampler", "SamplingTarget", "Stepwise", "SuccessTrie", "ValidatorChecker", "ValueTable",
    "add_post_filter", "draw", "estimate", "estimate_from", "load_table", "save_table", "trie_key",
]  # fmt: skip
