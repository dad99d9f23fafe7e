"""Calls that generate, score and repair, with arguments of the right types and any values.

generate  texts of a small pattern, with any stop strings, biases, penalties and numbers
choose    a few options: their probabilities are a distribution
repair    any text and a small pattern: the answer matches, and the number of edits is correct
"""

from __future__ import annotations

import math
import re
from typing import Any

from hypothesis import strategies as st

import constrain
from constrain.correction.edits import count_edits
from tests.model_factory import UniformModel

from ..findings import Disagreement
from ..target import Target, suppress_our_errors

__all__ = ["TARGETS"]

BYTES = constrain.Vocabulary.bytes()
PATTERNS = ("[ab]{1,6}", "(ab|c)*d", "a+b+", "x", "", "[^a]{2}", "(é|ü)+z")
numbers = st.one_of(
    st.floats(), st.floats(0, 2), st.integers(-2, 5), st.sampled_from([10**30, -(10**400), 1e-308, 1e308])
)
texts = st.one_of(st.text(max_size=8), st.text("abcd", max_size=8))
options = st.fixed_dictionaries(
    {"regex": st.sampled_from(PATTERNS), "seed": st.integers(0, 99)},
    optional={
        **dict.fromkeys(("temperature", "top_p", "min_p"), numbers),
        **dict.fromkeys(("repetition_penalty", "presence_penalty", "frequency_penalty"), numbers),
        "top_k": st.integers(-1, 300), "max_tokens": st.integers(-1, 20), "n": st.integers(-1, 4),
        "stop": st.one_of(texts, st.lists(texts, max_size=4)), "retries": st.integers(-1, 3),
        "logit_bias": st.dictionaries(st.one_of(st.integers(-2, 260), texts), numbers, max_size=4),
        "forced": st.sampled_from(["sample", "canonical"]),
    },
)  # fmt: skip


def check_generate(given: dict[str, Any]) -> None:
    """Check that every text matches the pattern and has at most max_tokens tokens."""
    with suppress_our_errors():
        made = constrain.generate(UniformModel(BYTES.size), tokenizer=BYTES, **{"max_tokens": 20, **given})
        for one in made if isinstance(made, list) else [made]:
            if not re.fullmatch(given["regex"], one.text):
                raise Disagreement("a text that does not match", f"{one.text!r} of {given['regex']}")
            if len(one.tokens) > given.get("max_tokens", 20):
                raise Disagreement("more than max_tokens", f"{one.tokens}")


def check_choose(given: list[str]) -> None:
    """Check that the probabilities of the options add up to 1."""
    with suppress_our_errors():
        found = constrain.choose(UniformModel(BYTES.size), None, given, tokenizer=BYTES)
        if not math.isclose(sum(found.probabilities.values()), 1.0, abs_tol=1e-9):
            raise Disagreement("probabilities do not add up", f"{found.probabilities}")


def check_repair(given: tuple[str, str]) -> None:
    """Check that the answer matches, and that its distance is consistent with the number of edits."""
    text, pattern = given
    with suppress_our_errors():
        found = constrain.repair(text, regex=pattern, most_nodes=2_000)
        if not re.fullmatch(pattern, found.text):
            raise Disagreement("a repair that does not match", f"{found.text!r} of {pattern}")
        if not found.at_least <= count_edits(text, found.text) <= found.distance:
            raise Disagreement("a distance that is not that of the texts", f"{found}")


TARGETS = (
    Target("generate", "options of generate with any values", options, check_generate),
    Target("choose", "probabilities of any options", st.lists(texts, max_size=6), check_choose),
    Target("repair", "any text into a small pattern", st.tuples(texts, st.sampled_from(PATTERNS)), check_repair),
)
