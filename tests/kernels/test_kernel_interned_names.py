"""Names as chains of bytes: interned, written out again, and decoded as the standard library decodes JSON."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain.kernels import layout as at
from constrain.kernels.interned_names import decode_name, extend_chain, spell_utf8, write_name_to_buffer
from constrain.vocabulary.mask_table import data_address

EDGES = [0, 8, 31, 34, 47, 92, 127, 128, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x103FF, 0x10400,
         0xFFFFF, 0x100000, 0x10FFFF]  # fmt: skip
characters = st.characters(codec="utf-8") | st.sampled_from(EDGES).map(chr)


class Slots:
    """The slots of a context that names use, between marks."""

    def __init__(self, names: int = 200, buffer: int = 2000, hashes: int = 1024) -> None:
        self.memory: dict[int, np.ndarray] = {}
        self.arrays: dict[int, np.ndarray] = {}
        self.context = np.zeros(2 * at.SLOTS, np.int64)
        for slot, length in ((at.HEAD, at.HEAD_W), (at.NAMES, 3 * names), (at.NAME_HASH, hashes), (at.BUFFER, buffer)):
            self.memory[slot] = np.full(length + 2000, -9, np.int32)
            self.arrays[slot] = self.memory[slot][1000 : 1000 + length]
            self.context[2 * slot : 2 * slot + 2] = data_address(self.arrays[slot]), length
        self.arrays[at.HEAD][:] = 0
        self.arrays[at.HEAD][at.N_NAMES] = at.ROOTS
        self.arrays[at.NAMES][: 3 * at.ROOTS] = -1
        self.address = data_address(self.context)  # type: ignore[arg-type]

    def chained(self, root: int, values: bytes) -> int:
        """The chain of some bytes."""
        for value in values:
            root = extend_chain(self.address, root, value)
        return root

    def check(self) -> None:
        """That nothing was written beside the slots."""
        for slot, memory in self.memory.items():
            assert (memory[:1000] == -9).all() and (memory[1000 + len(self.arrays[slot]) :] == -9).all()

    def asks_for(self, slot: int) -> bool:
        """Return whether the last call requested more space there."""
        head = self.arrays[at.HEAD]
        return (int(head[at.STATUS]), int(head[at.ARGUMENT])) == (at.FULL, slot)


@given(st.lists(st.binary(max_size=8), max_size=20))
def test_equal_names_have_equal_ids_and_are_written_out_again(names: list[bytes]) -> None:
    slots = Slots()
    ids = [slots.chained(at.DECODED, name) for name in names]
    assert ids == [slots.chained(at.DECODED, name) for name in names]
    assert len(set(ids)) == len(set(names))
    distinct = {name[:end] for name in names for end in range(1, len(name) + 1)}
    assert slots.arrays[at.HEAD][at.N_NAMES] == at.ROOTS + len(distinct)
    for place, (name, number) in enumerate(zip(names, ids)):
        assert write_name_to_buffer(slots.address, number, place) == len(name)
        assert bytes(slots.arrays[at.BUFFER][place : place + len(name)].astype(np.uint8)) == name
    slots.check()


@given(st.integers(0, 12), st.integers(1, 40), st.sampled_from([16, 32, 64]))
def test_a_full_array_is_requested_to_grow(extra: int, count: int, hashes: int) -> None:
    """Of chains: while the hash table is not half full. Of a name in the buffer: all of it, from an offset on."""
    slots = Slots(at.ROOTS + extra, buffer=24, hashes=hashes)
    name, made = at.DECODED, 0
    for value in range(count):
        longer = extend_chain(slots.address, name, value)
        if longer < 0:
            assert slots.asks_for(at.NAMES) and (made == extra or 2 * (at.ROOTS + made) > hashes - 1)
            assert slots.arrays[at.HEAD][at.N_NAMES] == at.ROOTS + made
            break
        name, made = longer, made + 1
    else:
        assert made <= extra
    for place in range(25):
        found = write_name_to_buffer(slots.address, name, place)
        assert found == (made if place + made <= 24 else -1)
        assert found >= 0 or slots.asks_for(at.BUFFER)
    slots.check()


@pytest.mark.parametrize("code", EDGES)
def test_characters_are_spelled_in_utf8(code: int) -> None:
    slots = Slots()
    wanted = chr(code).encode()
    assert spell_utf8(slots.address, code, 5) == 5 + len(wanted)
    assert slots.arrays[at.BUFFER][5 : 5 + len(wanted)].tolist() == list(wanted)
    assert slots.arrays[at.BUFFER][5 + len(wanted)] == -9


@st.composite
def spelled(draw: st.DrawFn) -> bytes:
    """The inside of a JSON string: each character as it is or by an escape, digits in either case."""
    out = b""
    for char in draw(st.lists(characters, max_size=8)):
        unit = char.encode("utf-16-be").hex()
        escape = "".join("\\u" + unit[k : k + 4] for k in range(0, len(unit), 4))
        short = [r"\/"] if char == "/" else []
        plain = json.dumps(char, ensure_ascii=False)[1:-1]
        out += draw(st.sampled_from([plain, escape, escape.upper().replace("\\U", "\\u"), *short])).encode()
    return out


@given(spelled(), st.data())
def test_a_name_is_decoded_as_json_and_a_begun_escape_is_left_out(text: bytes, data: st.DataObject) -> None:
    begun = text[: data.draw(st.integers(0, len(text)))]
    pair = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F].."
    units = re.findall(pair + rb"|\\u....|\\[^u]|[^\\]", text, re.S)
    whole = b""
    for unit in units:
        if len(whole + unit) > len(begun):
            break
        whole += unit
    # Raw bytes stand as they are; what escapes spell is UTF-8.
    out = b"".join(
        json.loads(b'"' + unit + b'"').encode() if unit[:1] == b"\\" else unit
        for unit in re.findall(pair + rb"|\\u....|\\[^u]|[^\\]", whole, re.S)
    )
    slots = Slots()
    name = slots.chained(at.SPELLED, begun)
    assert decode_name(slots.address, name) == len(out)
    assert bytes(slots.arrays[at.BUFFER][: len(out)].astype(np.uint8)) == out
    slots.check()


@pytest.mark.parametrize("length", range(12))
def test_decoding_requests_space_before_it_writes(length: int) -> None:
    for room in range(40):
        slots = Slots(buffer=room)
        found = decode_name(slots.address, slots.chained(at.SPELLED, b"x" * length))
        assert found == length or (found == -1 and slots.asks_for(at.BUFFER) and room < 2 * length + 8)
        slots.check()
