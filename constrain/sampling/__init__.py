"""Sample texts from a language model under a Constraint. All samplers share one signature and return weighted draws.

`SAMPLERS` lists the samplers and the guarantees of each. `core/` holds the code that they share, `research/` exact
computations that are feasible for small models only.
"""

from __future__ import annotations

from .canonical_tokens import Canonical
from .checkers import Checker, Stepwise, ValidatorChecker
from .core.language_model import LanguageModel
from .core.results import Draw, Draws
from .estimation import Estimate, estimate, estimate_from
from .learned_twist.table_files import load_table, save_table
from .learned_twist.value_table import ValueTable
from .research.hidden_markov import Hmm
from .research.ngram import NGram
from .sampler_table import SAMPLERS, Sampler, add_post_filter, draw
from .success_trie import SuccessTrie, trie_key

__all__ = [
    "SAMPLERS", "Canonical", "Checker", "Draw", "Draws", "Estimate", "Hmm", "LanguageModel", "NGram",
    "Sampler", "Stepwise", "SuccessTrie", "draw", "estimate", "estimate_from", "ValidatorChecker", "add_post_filter",
    "trie_key", "ValueTable", "load_table", "save_table",
]  # fmt: skip
