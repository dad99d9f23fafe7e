"""Other engines on the same sources: llguidance and XGrammar.

peers-schema  schemas that all read, and instances: where ours differs from the exact reference as well, it is a finding
peers-gbnf    grammars that XGrammar reads, and all short texts

A peer runs in a process forked for the input: that it dies or runs on is not ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product
from typing import Any

from hypothesis import strategies as st

import constrain
from bench.workers import Failure, Guard, run_guarded
from tests import schema_strategies as strategies

from ..findings import Disagreement
from ..target import Target, ours_only
from ..walk import BYTES, accepts
from .gbnf import grammar_of, sound
from .schema import ANY, by_reference, compare

__all__ = ["TARGETS"]

WORDS = ["".join(word) for length in range(4) for word in product("ab", repeat=length)]


LIMITS = Guard(5, 1 << 30, "cpu")


def isolated(ask: Callable[[], Any]) -> Any:
    """Return the answer of a peer in a separate process; None if that process fails."""
    answer = next(run_guarded(lambda _: ask(), [None], limits=LIMITS, fresh=True))[1]
    return None if isinstance(answer, Failure) else answer


def prepare() -> None:
    """Import the peers that are installed."""
    for ready in (llguidance_tokenizer, xgrammar_compiler):
        try:
            ready()
        except ImportError:
            continue


@lru_cache(maxsize=1)
def llguidance_tokenizer() -> Any:
    """Return bytes as tokens, for llguidance."""
    import llguidance

    return llguidance.LLTokenizer("byte")


@lru_cache(maxsize=1)
def xgrammar_compiler() -> Any:
    """Return bytes as tokens, for XGrammar."""
    import xgrammar

    tokens = [bytes((value,)) for value in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def by_llguidance(schema: str, instance: str) -> bool | None:
    """Return whether llguidance accepts the instance; None if it refuses the schema."""
    import llguidance

    try:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults={"whitespace_flexible": True})
    except ValueError:
        return None
    matcher = llguidance.LLMatcher(llguidance_tokenizer(), grammar, log_level=0)
    if matcher.is_error():
        return None
    data = list(instance.encode())
    taken = matcher.try_consume_tokens(data)
    return bool(taken == len(data) and matcher.is_accepting())


def by_xgrammar(grammar: str, words: list[str]) -> list[bool] | None:
    """Return which words XGrammar accepts; None if it refuses the grammar."""
    import xgrammar

    try:
        compiled = xgrammar_compiler().compile_grammar(grammar)
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
        with ours_only():
            ours = constraint is not None and accepts(constraint, instance.encode())
            theirs = isolated(partial(by_llguidance, text, instance))
            if theirs is not None and theirs != ours and by_reference(text, instance) is None:
                raise Disagreement("constrain against llguidance, the reference undecided", f"{text}\n{instance}")
            compare(text, instance, ours)


def check_gbnf(drawn: tuple[tuple[str, object], ...]) -> None:
    """All short texts; grammars that mean a list of words are judged by it, XGrammar is the second opinion."""
    from tests.frontends.gbnf.test_gbnf import NAMES, language

    text = grammar_of(drawn)
    listed = language({name: meaning for name, (_, meaning) in zip(NAMES, drawn)})  # type: ignore[misc]
    theirs = isolated(partial(by_xgrammar, text, WORDS))
    try:
        constraint = constrain.compile(BYTES, constrain.gbnf(text))
    except constrain.UnsatisfiableError:
        constraint = None
    for at, word in enumerate(WORDS):
        with ours_only():
            ours = constraint is not None and accepts(constraint, word.encode())
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
