"""Masks over odd vocabularies.

masks  small grammars over vocabularies that split characters, escapes and brackets: each mask is compared, token by
       token, with the derivatives of `tests/grammar_oracle.py`
"""

from __future__ import annotations

import random
import time
from typing import Any

from hypothesis import strategies as st

from constrain.base.errors import LimitError, VocabularyError
from constrain.compilation.constraint_compiler import compile_grammar
from tests import grammar_factory as make
from tests.grammar_oracle import Reference

from ..findings import Disagreement
from ..target import Target
from ..walk import list_members

__all__ = ["TARGETS"]

STEPS = 5
SLOW = 1.0
"""Maximum CPU time of a step, except the first one, which prepares the vocabulary."""
KINDS = {"rules": make.rules, "characters": make.characters, "objects": make.objects}
drawn_cases = st.sampled_from(sorted(KINDS)).flatmap(
    lambda kind: st.tuples(
        KINDS[kind], st.one_of(make.vocabularies(kind), make.poor_vocabularies(kind)), st.integers(0, 2**16)
    )
)


def check(drawn: tuple[Any, Any, int]) -> None:
    """Compare masks along a random path of allowed tokens."""
    grammar, vocabulary, seed = drawn
    if not make.sound(grammar):
        return
    oracle, rng, text = Reference(grammar), random.Random(seed), b""
    try:
        matcher = compile_grammar(grammar, vocabulary).matcher()
        for step in range(STEPS):
            begin = time.process_time()
            allowed = set(list_members(matcher.mask(), vocabulary.size).tolist())
            if step and time.process_time() - begin > SLOW:
                raise Disagreement("a step takes more than a second", f"after {text!r}")
            wanted = oracle.mask(text, vocabulary.tokens) if has_all_bytes(matcher) else set()
            complete = oracle.accepts(text)
            if matcher.is_complete != complete:
                raise Disagreement("is_complete against the derivatives", f"{text!r}")
            if has_all_bytes(matcher) and allowed - set(vocabulary.eos_ids) != wanted:
                raise Disagreement("mask against the derivatives", f"after {text!r}: {sorted(allowed ^ wanted)[:10]}")
            plain = sorted(allowed - set(vocabulary.eos_ids))
            if not plain:
                return
            token = rng.choice(plain)
            matcher.advance(token)
            text += vocabulary.tokens[token] or b""
    except LimitError:
        return
    except VocabularyError:  # an empty mask, which only a vocabulary that lacks bytes may have
        if not vocabulary.missing_bytes:
            raise


def has_all_bytes(matcher: Any) -> bool:
    """Return whether every byte has a token, so that a mask depends on the allowed bytes only."""
    return matcher.constraint.spellable is None


TARGETS = (
    Target("masks", "small grammars over odd vocabularies, against derivatives", drawn_cases, check, seconds=120),
)
