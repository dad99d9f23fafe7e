"""Members that must differ, compared by their texts (kernels): the answers of the caller, from the values."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain.engine.uniqueness.json_equality import parse_value
from constrain.engine.uniqueness.value_continuations import find_continuations
from constrain.kernels import layout as at
from constrain.kernels.interned_names import extend_chain
from constrain.kernels.unique_members import extend_text, find_candidates
from constrain.kernels.unique_values import MOST_COMPARED, add_candidates, is_new_member
from constrain.kernels.value_texts import NOT_DECIDED
from tests.kernel_context_factory import Context

LENGTHS = {
    at.NAMES: 3 * 8_192, at.NAME_HASH: 1 << 15, at.GUARDS: 8 * at.GUARD_W, at.GUARD_HASH: 64, at.BUFFER: 8_192,
}  # fmt: skip
KEYS = st.sampled_from(["a", "ab", "b", "é", ""])
STRINGS = st.text("ab/ é漢\U0001f600", max_size=3)
NUMBERS = st.sampled_from([0, 1, 10, 12, 100, 120, 7, -1, -12, 1.5, 1.25, 15, 1e3, 1e30, 0.1])
SCALARS: st.SearchStrategy[Any] = NUMBERS | st.sampled_from([True, False, None]) | STRINGS
NESTED = SCALARS | st.dictionaries(KEYS, SCALARS, max_size=2) | st.lists(SCALARS, max_size=2)
CONTAINERS = st.dictionaries(KEYS, NESTED, max_size=3) | st.lists(NESTED, max_size=3)
ODD: st.SearchStrategy[Any] = st.sampled_from(['a"', "\\", [[{"a": [1]}]], [["a\n"]]])
VALUES = st.one_of(CONTAINERS, CONTAINERS, CONTAINERS, SCALARS, SCALARS, ODD)
LISTS = st.lists(VALUES, min_size=1, max_size=4) | st.lists(STRINGS, min_size=1, max_size=5)


def write_text(context: Context, start: int, text: bytes) -> int:
    """The chain of a text after another one."""
    for byte in text:
        start = context.run(extend_text, start, byte)
    return start


def write_members(context: Context, members: list[str]) -> tuple[int, int]:
    """A list of members, and where the text of its last one ends."""
    found, end = int(at.NO_MEMBERS), int(at.SPELLED)
    for member in members:
        start = write_text(context, end, b",")
        end = write_text(context, start, member.encode())
        found = context.run(extend_chain, context.run(extend_chain, found, start), end)
    return found, write_text(context, end, b",")


@st.composite
def spellings(draw: st.DrawFn, value: Any) -> str:
    """A JSON text of a value: members in any order, escapes, numbers with trailing zeros, a space after a word."""
    if isinstance(value, dict):
        members = draw(st.permutations(list(value.items())))
        text = ",".join(f"{draw(spellings(name))}:{draw(spellings(one))}" for name, one in members)
        return f"{{{text}}}"
    if isinstance(value, list):
        return f"[{','.join(draw(spellings(one)) for one in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=draw(st.sampled_from([False, False, False, True])))
    text = json.dumps(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and "e" not in text:
        ends = ["", "", "", "e0", "E+0", *(["0", "00e-1"] if "." in text else [".0", ".00"])]
        text += draw(st.sampled_from(ends))
    return text


def may_be_left_open(text: str) -> bool:
    """Whether the kernel may leave the values of a text to the caller: escapes, decimals, members within members."""
    return "\\" in text or re.search(r"\d[.eE]", text) is not None or re.search(r"[\[{].+[\[{].*,", text) is not None


@settings(deadline=None, max_examples=70)
@given(LISTS, VALUES, st.data())
def test_answers_are_those_of_the_caller(values: list[Any], value: Any, data: st.DataObject) -> None:
    """At every byte whether some candidate remains, and after which bytes; at the end whether the member is new."""
    members = [data.draw(spellings(one)) for one in values]
    if data.draw(st.booleans()):
        value = data.draw(st.sampled_from(values))
    text = data.draw(spellings(value))
    if data.draw(st.booleans()):  # a space after a word is kept
        text = re.sub(r"(?<=[0-9a-z])(?=[,}\]])", " ", text) if '"' not in text else text.replace("true}", "true }")
    spelled = text.encode()
    context = Context(LENGTHS)
    written, start = write_members(context, members)
    earlier = [parse_value(member.encode()) for member in members]
    is_equal = parse_value(spelled) in earlier
    register = context.run(extend_chain, written, start)
    chain = context.run(extend_chain, at.NO_CANDIDATES, register)
    is_decided = not any(map(may_be_left_open, [*members, text]))
    for length in range(len(spelled) + 1):
        end = write_text(context, start, spelled[:length])
        answer = context.run(add_candidates, chain, end)
        if answer == NOT_DECIDED:
            assert not is_decided, spelled[:length]
            continue
        following = [find_continuations(spelled[:length], one) for one in earlier]
        wanted = frozenset[int]().union(*(one for one in following if one is not None))
        record = context[at.GUARDS][at.GUARD_W * answer : at.GUARD_W * (answer + 1)]
        found = {byte for byte in range(256) if int(record[at.GUARD_BYTES + (byte >> 5)]) >> (byte & 31) & 1}
        remain = record[at.GUARD_ANSWER] != at.NO_CANDIDATES
        assert found <= wanted | {0x5C} and remain <= (set(following) != {None}), (members, spelled[:length])
        if "." not in text:  # the caller strips zeros after the point, which may not be the last digits
            assert wanted <= found and remain == (set(following) != {None}), (members, spelled[:length])
        if is_equal:
            assert remain and set(spelled[length : length + 1]) <= found, (members, spelled[:length])
        context.head[at.N_GUARDS] = 0
        context[at.GUARD_HASH][:] = -1
    is_new = context.run(is_new_member, register, write_text(context, start, spelled))
    if is_new == NOT_DECIDED:
        assert not is_decided
    else:
        assert is_new == (not is_equal), (members, spelled)


@pytest.mark.parametrize(
    ("member", "text", "following"),
    [
        ('"a/"', '"a\\', "/u"),
        ('"aé"', '"a\\u00', "eE"),
        ('"aé"', '"a\\u00E', "9"),
        ('"aé"', '"a\\u01', None),
        ('"\U0001f600"', '"\\u', "dD"),
        ('{"map":{"names":["a","b"]}}', '{"map":{"names":["a",', ' \t\r\n"'),
        ('[[1,2],["x",3]]', '[[1,2],["y', None),
        ("12.50", "125", "+-.0123456789Ee"),
        ("12.50", "126", None),
        ('[{"a":1,"b":2},0]', '[{"b":1,"a":2},', None),
    ],
)
def test_candidates_are_decided_in_the_kernel(member: str, text: str, following: str | None) -> None:
    context = Context(LENGTHS)
    written, start = write_members(context, [member])
    chain = context.run(extend_chain, at.NO_CANDIDATES, context.run(extend_chain, written, start))
    answer = context.run(add_candidates, chain, write_text(context, start, text.encode()))
    assert answer >= 0
    record = context[at.GUARDS][at.GUARD_W * answer : at.GUARD_W * (answer + 1)]
    found = {byte for byte in range(256) if int(record[at.GUARD_BYTES + (byte >> 5)]) >> (byte & 31) & 1}
    assert (record[at.GUARD_ANSWER] != at.NO_CANDIDATES) == (following is not None)
    assert found - {0x5C} == set((following or "").encode())


def test_the_caller_is_asked_about_others() -> None:
    """Members within others, unknown ones, long ones, and what has an escape or the parts of an equal value."""
    context = Context(LENGTHS)
    written, start = write_members(context, ['{"a":1}'])
    register = context.run(extend_chain, written, start)
    chain = context.run(extend_chain, at.NO_CANDIDATES, register)
    begun = write_text(context, start, b'{"a"')
    assert context.run(add_candidates, chain, begun) >= 0
    assert context.run(add_candidates, context.run(extend_chain, chain, register), begun) == NOT_DECIDED
    assert context.run(add_candidates, chain, write_text(context, start, b'{"\\u0061')) == NOT_DECIDED
    unknown = context.run(extend_chain, at.UNKNOWN_MEMBERS, start)
    chain = context.run(extend_chain, at.NO_CANDIDATES, unknown)
    assert context.run(add_candidates, chain, begun) == NOT_DECIDED
    nested, start = write_members(context, ['[{"a":1,"b":2}]'])
    chain = context.run(extend_chain, at.NO_CANDIDATES, context.run(extend_chain, nested, start))
    assert context.run(add_candidates, chain, write_text(context, start, b'[{"b":2,"a":1}')) == NOT_DECIDED
    long, start = write_members(context, ['{"a":"' + "b" * (MOST_COMPARED // 3) + '"}'] * 3)
    chain = context.run(extend_chain, at.NO_CANDIDATES, context.run(extend_chain, long, start))
    begun = write_text(context, start, b'{"a"')
    assert context.run(add_candidates, chain, begun) == NOT_DECIDED
    context.head[at.CANDIDATES], context.head[at.TEXT] = chain, begun
    assert context.run(find_candidates) == -1 and context.request == (at.NEED_CANDIDATES, chain)
