"""Members that are strings without escapes (kernels): the answers of the caller, from its index of values."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from constrain.engine.uniqueness.json_equality import parse_value
from constrain.engine.uniqueness.value_index import ValueIndex
from constrain.kernels import layout as at
from constrain.kernels.interned_names import extend_chain
from constrain.kernels.unique_members import extend_text, find_candidates
from constrain.kernels.unique_objects import add_object_candidates
from constrain.kernels.unique_strings import (
    MOST_COMPARED,
    NOT_DECIDED,
    add_candidates,
    are_strings,
    is_new_string,
    may_answer,
    measure_string,
)
from tests.kernel_context_factory import Context

LENGTHS = {at.NAMES: 3 * 4_096, at.NAME_HASH: 1 << 14, at.GUARDS: 8 * at.GUARD_W, at.GUARD_HASH: 64, at.BUFFER: 8_192}
STRINGS = st.text("abé漢\U0001f600", max_size=3).map(lambda text: f'"{text}"')
OTHERS = st.sampled_from(["12", "[]", "null", '"\\u0061"', '"a\\"b"', '{"a": 1}', '""'])
MEMBERS = st.lists(STRINGS, max_size=5) | st.lists(STRINGS | OTHERS, max_size=4)


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


def is_plain(text: str) -> bool:
    """Whether a text is a string, or the beginning of one, without escapes."""
    return text[:1] in ("", '"') and "\\" not in text


@settings(deadline=None, max_examples=400)
@given(MEMBERS, STRINGS | OTHERS, st.data())
def test_answers_are_those_of_the_caller(members: list[str], text: str, data: st.DataObject) -> None:
    """At every byte whether some candidate remains, and after which bytes; at the end whether the member is new."""
    if members and data.draw(st.booleans()):
        text = data.draw(st.sampled_from(members))
    context = Context(LENGTHS)
    written, start = write_members(context, members)
    index = ValueIndex()
    for member in members:
        index.add(parse_value(member.encode()))
    register = context.run(extend_chain, written, start)
    chain = context.run(extend_chain, at.NO_CANDIDATES, register)
    assert context.run(are_strings, written) == all(map(is_plain, members)) == context.run(may_answer, chain)
    spelled = text.encode()
    for length in range(len(spelled) + 1):
        end = write_text(context, start, spelled[:length])
        measured = context.run(measure_string, start, end)
        assert measured == (length if is_plain(spelled[:length].decode(errors="ignore")) else -1)
        if measured < 0 or not members or not all(map(is_plain, members)):
            continue
        wanted = index.candidates(spelled[:length], None, lambda units: None).following
        guard = at.GUARD_W * context.run(add_candidates, chain, end)
        record = context[at.GUARDS][guard : guard + at.GUARD_W]
        found = {byte for byte in range(256) if int(record[at.GUARD_BYTES + (byte >> 5)]) >> (byte & 31) & 1}
        assert (record[at.GUARD_ANSWER] == at.NO_CANDIDATES) == (wanted is None)
        assert found >= set(wanted or ()) and found <= set(wanted or ()) | {0x5C}
        context.head[at.N_GUARDS] = 0
        context[at.GUARD_HASH][:] = -1
    context.head[at.CANDIDATES], context.head[at.TEXT] = chain, write_text(context, start, spelled)
    is_object = members and context.run(add_object_candidates, chain, int(context.head[at.TEXT])) != NOT_DECIDED
    if members and not is_object and not (is_plain(text) and all(map(is_plain, members))):
        assert context.run(find_candidates) == -1 and context.asked == (at.NEED_CANDIDATES, chain)
    elif members:
        assert context.run(find_candidates) == 0 == context.run(find_candidates)
    decided = is_plain(text) and all(map(is_plain, members))
    is_new = context.run(is_new_string, register, write_text(context, start, spelled))
    assert is_new == (int(parse_value(spelled) not in index.values) if decided else NOT_DECIDED)


def test_the_caller_is_asked_about_other_lists() -> None:
    """Lists of unknown members, long ones, and members that are written within others."""
    context = Context(LENGTHS)
    assert not context.run(are_strings, at.UNKNOWN_MEMBERS)
    members, _ = write_members(context, ['"' + "ab" * 40 + chr(97 + k) + '"' for k in range(20)])
    assert context.run(are_strings, members)
    half, _ = write_members(context, ['"' + "cd" * (MOST_COMPARED // 4) + '"', '"' + "e" * (MOST_COMPARED // 2) + '"'])
    assert not context.run(are_strings, half)
    one = context.run(extend_chain, at.NO_CANDIDATES, context.run(extend_chain, members, at.SPELLED))
    assert context.run(may_answer, one)
    assert not context.run(may_answer, context.run(extend_chain, one, context.run(extend_chain, members, at.SPELLED)))
