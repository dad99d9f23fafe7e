"""Search for the likeliest texts of a language model under a constraint: beams, best-first search, stochastic beams.

    beam_decoding        beam search: length penalty, patience, diverse groups, banks of phrases, look-ahead
    best_first           best-first search with an admissible bound: the n likeliest texts, and whether that is proven
    stochastic_beams     n different texts drawn without replacement, with inclusion probabilities

All three work with any LanguageModel and any Constraint or Checker, and call the model once per step for all
hypotheses. `search_options` holds their options, `search_results` what they return, `hypotheses` what they share.
"""

from __future__ import annotations

from .beam_decoding import beam_search
from .best_first import best_first_search
from .hypothesis_lattice import Lattice, LatticeEdge, build_lattice
from .phrase_progress import PhraseProgress
from .search_options import BeamSearch, BestFirst, Lookahead, PhraseBanks, StochasticBeams
from .search_results import FoundAnswer, FoundAnswers, FoundTokens
from .stochastic_beams import stochastic_beam_search

__all__ = [
    "BeamSearch", "BestFirst", "FoundAnswer", "FoundAnswers", "FoundTokens", "Lattice", "LatticeEdge", "Lookahead",
    "PhraseBanks", "PhraseProgress", "StochasticBeams", "beam_search", "best_first_search", "build_lattice",
    "stochastic_beam_search",
]  # fmt: skip
