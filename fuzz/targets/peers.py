"""Other engines on the same sources: llguidance and XGrammar.

peers-schema  schemas and instances: it is a finding if our verdict differs from llguidance and from the exact reference
peers-gbnf    grammars that XGrammar supports, and all short texts

A peer runs in a process forked for each input; if it dies or does not return, that is not a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

from hypothesis import strategies as st

import constrain
from bench.byte_peers import build_xgrammar_compiler
from bench.workers import Failure, Guard, run_guarded
from tests import schema_strategies as strategies
from tests.text_acceptance import accepts_text

from ..findings import Disagreement
from ..target import Target, suppress_our_errors
from ..walk import BYTES
from .gbnf import build_grammar, sound
from .schema import ANY, compare_verdicts, judge_with_reference

__all__ = ["TARGETS"]

WORDS = ["".join(word) for length in range(4) for word in product("ab", repeat=length)]

LIMITS = Guard(5, 1 << 30, "cpu")
build_compiler = cache(build_xgrammar_compiler)


def ask_peer(ask: Callable[[], Any]) -> Any:
    """Return the answer of a peer in a separate process; None if that process fails."""
    answer = next(run_guarded(lambda _: ask(), [None], limits=LIMITS, fresh=True))[1]
    return None if isinstance(answer, Failure) else answer


def prepare() -> None:
    """Import the peers that are installed."""
    for ready in (build_tokenizer, build_compiler):
        try:
            ready()
        except ImportError:
            continue


@cache
def build_tokenizer() -> Any:
    """Return the tokenizer of llguidance whose tokens are bytes."""
    import llguidance

    return llguidance.LLTokenizer("byte")


def judge_with_llguidance(schema: str, instance: str) -> bool | None:
    """Return whether llguidance accepts the instance; None if it refuses the schema."""
    import llguidance

    try:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})
    except ValueError:
        return None
    matcher = llguidance.LLMatcher(build_tokenizer(), grammar, log_level=0)
    if matcher.is_error():
        return None
    data = list(instance.encode())
    taken = matcher.try_consume_tokens(data)
    return bool(taken == len(data) and matcher.is_accepting())


def judge_with_xgrammar(grammar: str, words: list[str]) -> list[bool] | None:
    """Return which words XGrammar accepts; None if it refuses the grammar."""
    import xgrammar

    try:
        compiled = build_compiler().compile_grammar(grammar)
    except RuntimeError:
        return None
    out = []
    for word in words:
        matcher = xgrammar.GrammarMatcher(compiled)
        out.append(all(matcher.accept_token(byte) for byte in word.encode()) and matcher.accept_token(256))
    return out


def check_schema(drawn: tuple[Any, list[Any]]) -> None:
    """Compare with llguidance; where verdicts differ, the exact reference decides."""
    schema, values = drawn
    text = json.dumps(schema)
    try:
        constraint = constrain.compile(BYTES, schema=text, style=ANY)
    except constrain.UnsatisfiableError:
        constraint = None
    except constrain.ConstrainError:
        return
    for value in values:
        instance = json.dumps(value)
        with suppress_our_errors():
            ours = constraint is not None and accepts_text(constraint, instance.encode())
            theirs = ask_peer(partial(judge_with_llguidance, text, instance))
            if theirs is not None and theirs != ours and judge_with_reference(text, instance) is None:
                raise Disagreement("constrain against llguidance, the reference undecided", f"{text}\n{instance}")
            compare_verdicts(text, instance, ours)


def check_gbnf(drawn: tuple[tuple[str, object], ...]) -> None:
    """Compare the verdict on every short text with XGrammar and with the words of the grammar, listed by brute force."""
    from tests.frontends.gbnf.test_gbnf import NAMES, language

    text = build_grammar(drawn)
    listed = language({name: meaning for name, (_, meaning) in zip(NAMES, drawn)})  # type: ignore[misc]
    theirs = ask_peer(partial(judge_with_xgrammar, text, WORDS))
    try:
        constraint = constrain.compile(BYTES, constrain.gbnf(text))
    except constrain.UnsatisfiableError:
        constraint = None
    for at, word in enumerate(WORDS):
        with suppress_our_errors():
            ours = constraint is not None and accepts_text(constraint, word.encode())
            if theirs is not None and theirs[at] != ours and (word.encode() in listed) != ours:
                raise Disagreement("constrain against XGrammar and the listed language", f"{text}\n{word!r}")


TARGETS = (
    Target(
        "peers-schema",
        "schemas through llguidance",
        st.tuples(strategies.schemas, st.lists(strategies.values, max_size=2)),
        check_schema,
        prepare,
    ),
    Target("peers-gbnf", "grammars through XGrammar", sound, check_gbnf, prepare),
)
