"""Members that are objects (kernels): the answers of the caller, from its index of values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st

from constrain.engine.uniqueness.json_equality import parse_value
from constrain.engine.uniqueness.value_index import ValueIndex
from constrain.kernels import layout as at
from constrain.kernels.interned_names import extend_chain
from constrain.kernels.unique_members import find_candidates
from constrain.kernels.unique_objects import add_object_candidates, is_new_object
from constrain.kernels.unique_strings import NOT_DECIDED
from tests.kernel_context_factory import Context
from tests.kernels.test_kernel_unique_strings import write_members, write_text

LENGTHS = {
    at.NAMES: 3 * 8_192, at.NAME_HASH: 1 << 15, at.GUARDS: 8 * at.GUARD_W, at.GUARD_HASH: 64, at.BUFFER: 8_192,
}  # fmt: skip
KEYS = st.sampled_from(["a", "ab", "b", "é", ""])
SCALARS: st.SearchStrategy[Any] = st.sampled_from([0, 1, 10, 12, 100, 120, 7, True, False, None]) | st.text(
    "ab é漢", max_size=2
)
OBJECTS = st.dictionaries(KEYS, SCALARS | st.dictionaries(KEYS, SCALARS, max_size=2), max_size=3)
ODD: st.SearchStrategy[Any] = st.sampled_from([-1, 1.5, 1e3, 'a"', "\\", [], [1], [{"a": 1}], [[]]])
VALUES = st.one_of(OBJECTS, OBJECTS, OBJECTS, SCALARS, ODD, st.dictionaries(KEYS, SCALARS | ODD, max_size=2))


def spell(value: Any, data: st.DataObject) -> str:
    """A JSON text, of objects with their members in any order."""
    if isinstance(value, dict):
        value = dict(data.draw(st.permutations(list(value.items()))))
    ascii_only = data.draw(st.sampled_from([False, False, True]))
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))


@settings(deadline=None, max_examples=200)
@given(st.lists(VALUES, min_size=1, max_size=4), VALUES, st.data())
def test_answers_are_those_of_the_caller(values: list[Any], value: Any, data: st.DataObject) -> None:
    """At every byte whether some candidate remains, and after which bytes; or that it is not decided."""
    members = [spell(one, data) for one in values]
    if data.draw(st.booleans()):
        value = data.draw(st.sampled_from(values))
    spelled = spell(value, data).encode()
    if data.draw(st.booleans()):  # a space after a word is kept
        spelled = spelled.replace(b"1,", b"1 ,").replace(b"1}", b"1 }").replace(b"true,", b"true ,")
    context = Context(LENGTHS)
    written, start = write_members(context, members)
    index = ValueIndex()
    for member in members:
        index.add(parse_value(member.encode()))
    chain = context.run(extend_chain, at.NO_CANDIDATES, context.run(extend_chain, written, start))
    is_plain = all(is_decided(json.loads(text)) for text in [*members, spelled.decode()])
    is_plain = is_plain and not any("\\" in text for text in [*members, spelled.decode()])
    for length in range(len(spelled) + 1):
        end = write_text(context, start, spelled[:length])
        answer = context.run(add_object_candidates, chain, end)
        if answer == NOT_DECIDED:
            assert not (is_plain and (length == 0 or spelled[:1] == b"{")), spelled[:length]
            continue
        wanted = index.candidates(spelled[:length], None, lambda units: None).following
        record = context[at.GUARDS][at.GUARD_W * answer : at.GUARD_W * (answer + 1)]
        found = {byte for byte in range(256) if int(record[at.GUARD_BYTES + (byte >> 5)]) >> (byte & 31) & 1}
        assert (record[at.GUARD_ANSWER] == at.NO_CANDIDATES) == (wanted is None), (members, spelled[:length])
        assert found >= set(wanted or ()), (members, spelled[:length])
        assert found <= set(wanted or ()) | {0x5C}, (members, spelled[:length])
        context.head[at.N_GUARDS] = 0
        context[at.GUARD_HASH][:] = -1
    is_new = context.run(is_new_object, context.run(extend_chain, written, start), write_text(context, start, spelled))
    if is_new == NOT_DECIDED:
        assert not is_plain or spelled[:1] != b"{"
    else:
        assert is_new == (parse_value(spelled) not in index.values), (members, spelled)


def is_decided(value: Any) -> bool:
    """Whether the kernel compares a value with all others of this kind: integers, and objects one level deep."""
    if isinstance(value, dict):
        return all(is_decided(one) and not isinstance(one, dict) for one in value.values())
    return not isinstance(value, (list, float)) and value != -1


def test_the_caller_is_asked_about_others() -> None:
    """Members within others, unknown ones, long ones, strings, and what has an escape."""
    context = Context(LENGTHS)
    written, start = write_members(context, ['{"a":1}'])
    register = context.run(extend_chain, written, start)
    chain = context.run(extend_chain, at.NO_CANDIDATES, register)
    begun = write_text(context, start, b'{"a"')
    assert context.run(add_object_candidates, chain, begun) >= 0
    assert context.run(add_object_candidates, context.run(extend_chain, chain, register), begun) == NOT_DECIDED
    assert context.run(add_object_candidates, chain, write_text(context, start, b'"a')) == NOT_DECIDED
    assert context.run(add_object_candidates, chain, write_text(context, start, b'{"\\u')) == NOT_DECIDED
    unknown = context.run(extend_chain, at.UNKNOWN_MEMBERS, start)
    chain = context.run(extend_chain, at.NO_CANDIDATES, unknown)
    assert context.run(add_object_candidates, chain, begun) == NOT_DECIDED
    long, start = write_members(context, ['{"a":"' + "b" * 1_500 + '"}'] * 3)
    chain = context.run(extend_chain, at.NO_CANDIDATES, context.run(extend_chain, long, start))
    begun = write_text(context, start, b'{"a"')
    assert context.run(add_object_candidates, chain, begun) == NOT_DECIDED
    context.head[at.CANDIDATES], context.head[at.TEXT] = chain, begun
    assert context.run(find_candidates) == -1 and context.asked == (at.NEED_CANDIDATES, chain)
