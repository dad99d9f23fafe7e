"""The work of a step is counted: large sources are linked at compile, and a refusal is the same each time."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import constrain
from constrain import LimitError, Limits, Matcher, Style, Vocabulary
from constrain.kernels import layout as at
from constrain.program.program import Program

VOCABULARY = Vocabulary.bytes()


def keys(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"key{i}": {"type": "string"} for i in range(count)}}


@pytest.mark.parametrize(
    "schema",
    [
        keys(50_000),
        {"type": "array", "items": keys(50_000)},
        {"type": "array", "items": {"not": {"enum": [f"value {i}" for i in range(200_000)]}}},
    ],
    ids=["keys", "keys of items", "not enum"],
)
def test_large_sources_are_linked_when_they_are_compiled(schema: object) -> None:
    """Rules that a large source reaches soon are linked, so that no step has to."""
    program = constrain.compile(VOCABULARY, schema=schema).program
    assert all(program.words[cell] for cell in program.cells()[:100])


def test_a_rule_that_is_too_dear_is_refused_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first attempt has cached does not let a second one succeed."""
    schema = {"type": "object", "properties": {"a": keys(500)}, "required": ["a"], "additionalProperties": False}
    constraint = constrain.compile(VOCABULARY, schema=schema, style=Style(whitespace="compact"))
    assert isinstance(constraint.program, Program)
    matcher = constraint.matcher()
    constraint.program.work = 600
    for _ in range(3):
        with pytest.raises(LimitError, match=r"Limits\.work"):
            matcher.advance_bytes(b'{"a":{"key1":""}}')


def test_a_kept_refusal_holds_nothing_that_its_callers_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback would: in a server, the texts of all other requests, for as long as the constraint is cached."""

    class Text:
        """What a caller has in a local variable."""

    def advance(matcher: Matcher, text: Text) -> str:
        with pytest.raises(LimitError) as caught:
            matcher.advance_bytes(b'{"a":{"key1":""}}')
        return str(caught.value)

    schema = {"type": "object", "properties": {"a": keys(500)}, "required": ["a"], "additionalProperties": False}
    constraint = constrain.compile(VOCABULARY, schema=schema, style=Style(whitespace="compact"))
    text, matcher = Text(), constraint.matcher()
    constraint.program.work = 600
    held, message = weakref.ref(text), advance(matcher, text)
    del text
    gc.collect()
    assert held() is None
    assert advance(matcher, Text()) == message


def test_keys_that_depend_on_each_other_are_charged() -> None:
    """The closures of dependentRequired grow with the square of the keys."""
    needs = {f"key{i}": [f"key{i + 1}"] for i in range(5_000)}
    with pytest.raises(LimitError):
        constrain.compile(VOCABULARY, schema={**keys(5_001), "dependentRequired": needs}, limits=Limits(work=2_000_000))


def test_a_mask_asks_all_that_it_cannot_know_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens that hold members are tried from one set: questions about them are answered together, in a bounded number
    of rounds.
    """
    tokens = [bytes([b]) for b in range(256)] + [b"%d," % i for i in range(60)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    matcher = constrain.compile(vocabulary, schema={"type": "array", "uniqueItems": True}).matcher()
    matcher.advance_bytes(b"[" + b",".join(b"%d" % i for i in range(12)) + b",")
    rounds = 0
    original = constrain.engine.state_cache.StateCache._provide

    def provide(self: Any, linked: int) -> None:
        nonlocal rounds
        status = int(self.arrays[at.HEAD][at.STATUS])
        rounds += not self.uniqueness.is_answering and status not in (
            at.FULL,
            at.NEED_ROW,
            at.NEED_SUFFIXES,
            at.NEED_LEAF,
        )
        original(self, linked)

    monkeypatch.setattr("constrain.engine.state_cache.StateCache._provide", provide)
    matcher.mask()
    assert rounds < 20


@pytest.mark.parametrize("line", ['r{} ::= r{} | "b{}"', 'r{} ::= r{} "c" | "b{}"'])
def test_a_chain_of_rules_is_linked_in_a_bounded_number_of_rounds(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closure starts again after each round: one rule a round would cost the square of their number."""
    count = 2_000
    rules = "\n".join(line.format(i, i + 1, i) for i in range(count))
    text = f'root ::= "x" r0\n{rules}\nr{count} ::= "a"'
    matcher = constrain.compile(VOCABULARY, constrain.gbnf(text)).matcher()
    most = 0
    original = constrain.engine.state_cache.StateCache._provide

    def provide(self: Any, linked: int) -> None:
        nonlocal most
        most = max(most, linked)
        original(self, linked)

    monkeypatch.setattr("constrain.engine.state_cache.StateCache._provide", provide)
    assert b"x"[0] in matcher.next_bytes()
    matcher.advance_bytes(b"x")
    assert {*b"ab"} == matcher.next_bytes()
    assert 0 < most < 24


def test_all_rules_that_a_completion_reads_share_one_budget() -> None:
    """However many are read, and the second attempt is refused like the first."""
    clauses = [[f"x{(7 * i + 3 * k * k) % 40}" for k in range(3)] for i in range(30)]
    choices = [{"anyOf": [{"properties": {x: {"const": x}}, "required": [x]} for x in one]} for one in clauses]
    constraint = constrain.compile(VOCABULARY, schema={"type": "object", "allOf": choices}, limits=Limits(work=400_000))
    matcher, program, said = constraint.matcher(), constraint.program, []
    for _ in range(3):
        with pytest.raises(LimitError) as caught:
            matcher.shortest_completion()
        said.append(str(caught.value))
    assert len(set(said)) == 1
    assert len(program.links) < 400
