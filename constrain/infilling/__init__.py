"""Infilling: texts of which parts are known, and which are completed within a constraint.

`gaps` reads spans. `infill_decision` decides what is possible, over `position_lattice` (see there for the algorithm),
whose parts are `constraint_states`, `gap_states`, `lattice_steps` and `lattice_builder`; `likeliest_completion` finds
its best path. `text_intersection` does the same on grammars. `masked_decoding` is the loop around a masked diffusion
model, `causal_infilling` that around a causal one.
"""

from .causal_infilling import FilledText, infill
from .gaps import Gap
from .infill_decision import InfillAnswer, infill_check
from .masked_decoding import MaskedLanguageModel, MaskedOutcome, decode_masked
from .text_intersection import infill_form

__all__ = [
    "FilledText",
    "Gap",
    "InfillAnswer",
    "MaskedLanguageModel",
    "MaskedOutcome",
    "decode_masked",
    "infill",
    "infill_check",
    "infill_form",
]
