"""Preparation changes no mask, evicts nothing, stops when it is told to, and leaves errors to the step they concern."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import ConstrainError, Constraint, LimitError, Limits, Matcher, Style, Vocabulary, compile
from constrain.engine import memory_block, next_masks, preparation, state_cache
from constrain.engine.preparation import prepare_matchers
from constrain.kernels import layout as at
from constrain.program.program import Program
from constrain.vocabulary import mask_table
from tests import grammar_factory as make
from tests.engine import test_interrupts
from tests.engine.test_matcher_laws import list_tokens
from tests.engine.test_state_cache import list_masks
from tests.schema_strategies import schemas

ORDER = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"},
        "count": {"type": "integer", "minimum": 3, "maximum": 5000},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "maxItems": 9},
        "when": {"type": "string", "format": "date"},
    },
    "required": ["code"],
    "additionalProperties": False,
    "$defs": {
        "line": {
            "type": "object",
            "properties": {"sku": {"type": "string", "pattern": "^x+$"}, "more": {"$ref": "#/$defs/line"}},
        }
    },
}
TEXT = b'{"code": "AB-123", "count": 47, "lines": [{"sku": "xx", "more": {"sku": "x"}}], "when": "2026-01-31"}'
COMPACT = Style(whitespace="compact")


def prepare_all(*matchers: Matcher) -> int:
    """Prepare until nothing is left. Return the number of units."""
    count = [0]

    def is_over() -> bool:
        count[0] += 1
        return False

    assert prepare_matchers(matchers, is_over) is False
    return max(0, count[0] - len(matchers))


def stop_after(units: int) -> Callable[[], bool]:
    """Return an `is_over` that allows a number of units."""
    left = iter(range(units))
    return lambda: next(left, None) is None


# ---- equal masks -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(data=st.data())
def test_masks_of_schemas_are_those_without_preparation(data: st.DataObject) -> None:
    """Random walks, with any number of units before each step, and both with an own table."""
    schema, style = data.draw(schemas), data.draw(st.sampled_from([Style(), Style.any(), COMPACT]))
    try:
        plain = compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
    except ConstrainError:
        return
    prepared = compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
    for _ in range(data.draw(st.integers(1, 12))):
        prepare_matchers([prepared], stop_after(data.draw(st.sampled_from([0, 1, 3, 1000]))))
        mask = plain.mask()
        assert (prepared.mask() == mask).all()
        allowed = sorted(list_tokens(mask))
        if not allowed:
            break
        token = data.draw(st.sampled_from(allowed))
        plain.advance(token)
        prepared.advance(token)
    assert prepared.is_complete == plain.is_complete
    assert prepared.shortest_completion() == plain.shortest_completion()


@settings(max_examples=35)
@given(data=st.data())
def test_masks_of_grammars_are_those_without_preparation(data: st.DataObject) -> None:
    """Left recursion, ambiguity, counters and objects in any order, over random vocabularies."""
    kind = data.draw(st.sampled_from(["rules", "characters", "objects"]))
    vocabulary, grammar = data.draw(make.vocabularies(kind)), data.draw(getattr(make, kind).filter(make.sound))
    plain, prepared = (constrain.compile_grammar(grammar, vocabulary).matcher() for _ in range(2))
    for _ in range(data.draw(st.integers(1, 12))):
        prepare_matchers([prepared, prepared.fork()], stop_after(data.draw(st.sampled_from([0, 1, 3, 1000]))))
        mask = plain.mask()
        assert (prepared.mask() == mask).all()
        allowed = sorted(list_tokens(mask))
        if not allowed:
            break
        token = data.draw(st.sampled_from(allowed))
        plain.advance(token)
        prepared.advance(token)


# ---- what is prepared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", [Style(), Style.any()])
def test_a_prepared_step_links_no_rule_and_makes_no_row(style: Style) -> None:
    constraint = compile(Vocabulary.bytes(), schema=ORDER, style=style)
    matcher = constraint.matcher()
    counts = matcher._state_cache.table.arrays[at.TABLE]
    before = len(constraint.program.links), int(counts[at.N_ROWS])
    assert prepare_all(matcher) > 10
    assert len(constraint.program.links) > before[0] + 4 and counts[at.N_ROWS] > before[1] + 4
    for byte in TEXT:
        prepare_all(matcher)
        prepared = len(constraint.program.links), counts[: at.N_LEX_WORDS].tolist()
        matcher.mask()
        matcher.advance(byte)
        assert (len(constraint.program.links), counts[: at.N_LEX_WORDS].tolist()) == prepared, matcher.text
    prepare_all(matcher)
    assert prepare_all(matcher) == prepare_all(constraint.matcher()) == 0


def has_mask(matcher: Matcher) -> bool:
    """Return whether the mask of a position is stored."""
    sets = matcher._state_cache.arrays[at.SETS]
    return bool(sets[matcher.state[1] * at.SET_W + at.SET_MASK] >= 0)


def is_naming(matcher: Matcher) -> bool:
    """Return whether an undeclared key is being written."""
    return bool(matcher._state_cache.arrays[at.SETS][matcher.state[1] * at.SET_W + at.SET_FLAGS] & at.IS_NAMING)


@pytest.mark.parametrize("style", [Style(), COMPACT, Style.any()])
def test_the_masks_of_all_next_tokens_are_made(style: Style) -> None:
    """Except within undeclared keys, of which there are too many. After these, likely tokens are followed."""
    pieces = [b'"code', b'": "', b'", "', b"AB-", b"12", b"},", b"}}", b"]}", b"],", b'": [{"', b"2026-", b"01"]
    vocabulary = Vocabulary.from_tokens([*pieces, *(bytes([byte]) for byte in range(256)), None], (256 + len(pieces),))
    matcher = compile(vocabulary, schema=ORDER, style=style).matcher()
    for byte in TEXT.replace(b" ", b"" if style is COMPACT else b" "):
        prepare_all(matcher)
        for token in list_tokens(matcher.mask()):
            other = matcher.fork()
            other.advance(token)
            is_left = is_naming(other) or (is_naming(matcher) and token >= len(pieces))
            assert has_mask(other) or is_left or other.is_finished, (matcher.text, vocabulary.tokens[token])
        matcher.advance_bytes(bytes([byte]))


@pytest.mark.parametrize("bound", ["WORK_SHARE", "MEMORY_SHARE"])
def test_masks_are_made_ahead_within_bounds(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(next_masks, bound, 1 << 40)
    matcher = compile(Vocabulary.bytes(), schema=ORDER).matcher()
    before = matcher._state_cache.filled()
    prepare_all(matcher)
    assert matcher._state_cache.filled() == before


def link_of(text: bytes) -> int:
    """Return the first rule cell that is linked when a text is continued at its last byte."""
    constraint = compile(Vocabulary.bytes(), schema=ORDER, style=COMPACT)
    matcher = constraint.matcher()
    matcher.advance_bytes(text[:-1])
    linked = len(constraint.program.links)
    matcher.advance_bytes(text[-1:])
    return constraint.program.links[linked]


def test_the_nearest_is_prepared_first() -> None:
    """Values of keys that may come next, in their order; those that can come no more are last."""
    start, lines, when = b'{"code":"AB-123",', b'"lines":', b'"when":'
    cells = [link_of(start + lines), link_of(start + when), link_of(start + b'"count":')]
    constraint = compile(Vocabulary.bytes(), schema=ORDER, style=COMPACT)
    matcher = constraint.matcher()
    matcher.advance_bytes(start + b'"count":4,')
    linked = len(constraint.program.links)
    prepare_all(matcher)
    assert constraint.program.links[linked : linked + 2] == cells[:2]
    constraint = compile(Vocabulary.bytes(), schema=ORDER, style=COMPACT)
    matcher = constraint.matcher()
    matcher.advance_bytes(start + lines + b"[],")
    linked = len(constraint.program.links)
    prepare_all(matcher)
    assert constraint.program.links[linked] == cells[1]
    assert cells[2] in constraint.program.links[linked + 1 :], "for other texts"


def test_time_is_a_bound_and_zero_prepares_nothing() -> None:
    matcher = compile(Vocabulary.bytes(), schema=ORDER).matcher()
    links = len(matcher.constraint.program.links)
    assert matcher.prepare(0) is True
    assert len(matcher.constraint.program.links) == links
    assert matcher.prepare(3600) is False
    assert len(matcher.constraint.program.links) > links
    for enough in (10**400, float("inf"), np.float32(0.5), np.int64(1), Fraction(1, 2)):
        assert matcher.prepare(enough) is False  # type: ignore[arg-type]
    for seconds in ("1", None, True):
        with pytest.raises(TypeError, match="seconds"):
            matcher.prepare(seconds)  # type: ignore[arg-type]
    for wrong in (-1, -(10**5000), float("nan"), np.float32(-1)):
        with pytest.raises(ValueError, match="seconds"):
            matcher.prepare(wrong)


def test_a_text_that_has_ended_has_nothing_to_prepare() -> None:
    matcher = compile(Vocabulary.bytes(), schema={"type": "array"}).matcher()
    for token in (*b"[]", 256):
        matcher.advance(token)
    assert matcher.prepare(3600) is False


def test_texts_take_turns() -> None:
    """One unit for each, so that none waits for another."""
    constraints = [compile(Vocabulary.bytes(), schema=ORDER, style=COMPACT) for _ in range(3)]
    matchers = [constraint.matcher() for constraint in constraints]
    counts: list[list[int]] = []

    def is_over() -> bool:
        counts.append([len(constraint.program.links) for constraint in constraints])
        return False

    prepare_matchers(matchers, is_over)
    assert max(max(row) - min(row) for row in counts) == 1 < min(counts[-1]) - min(counts[0])


# ---- bounds ----------------------------------------------------------------------------------------------------------


def test_preparation_never_evicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a state cache that is evicted at each step, or one whose memory is used up."""
    small = {slot: max(64, length // 256) for slot, length in memory_block.INITIAL_LENGTHS.items()}
    for slot in (*state_cache.HASHES.values(), state_cache.at.SEEN, state_cache.at.WIDE):
        small[slot] = 256
    monkeypatch.setattr(memory_block, "INITIAL_LENGTHS", small)
    plain = compile(Vocabulary.bytes(), schema=ORDER)
    constraint = compile(Vocabulary.bytes(), schema=ORDER, limits=Limits(state_cache_bytes=130_000))
    for code in (b"AB-123", b"ZZ-4567", b"QU-98765", b"OK-111", b"CD-2222", b"EF-33333"):
        text = TEXT.replace(b"AB-123", code)
        matcher, wanted = constraint.matcher(), list_masks(plain, text)
        for place, byte in enumerate(text):
            assert matcher.mask().tobytes() == wanted[place]
            before = matcher.state, matcher._state_cache.filled()
            prepare_all(matcher)
            assert (matcher.state, matcher._state_cache.filled()) == before
            matcher.advance(byte)
    assert constraint.state_cache().epoch > 0


@pytest.mark.parametrize("bound", ["work", "code", "rows"])
def test_preparation_stops_at_its_bounds(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    wanted = list_masks(compile(Vocabulary.bytes(), schema=ORDER), TEXT)
    if bound == "work":
        monkeypatch.setattr(preparation, "WORK_SHARE", 1 << 40)
    elif bound == "code":
        monkeypatch.setattr(preparation, "CODE_SHARE", 1 << 40)
    else:
        monkeypatch.setattr(mask_table, "ROW_BYTES", 0)  # so that there is space for 64 rows
    constraint = compile(Vocabulary.bytes(), schema=ORDER)
    matcher = constraint.matcher()
    counts = matcher._state_cache.table.arrays[at.TABLE]
    if bound == "rows":
        counts[at.N_ROWS] = 32
    before = len(constraint.program.links), counts.tolist()
    assert prepare_all(matcher) <= (10 if bound == "rows" else 0)
    assert (len(constraint.program.links), counts.tolist()) == before
    assert list_masks(constraint, TEXT) == wanted


def test_preparation_skips_links_above_the_work_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = list_masks(compile(Vocabulary.bytes(), schema=ORDER), TEXT)
    monkeypatch.setattr(preparation, "LINK_UNITS", 1)
    constraint = compile(Vocabulary.bytes(), schema=ORDER)
    matcher = constraint.matcher()
    links = len(constraint.program.links)
    prepare_all(matcher)
    assert len(constraint.program.links) == links
    assert list_masks(constraint, TEXT) == wanted


def test_an_error_is_raised_by_the_step_that_needs_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    start = b'{"code":"AB-123",'
    cell = link_of(start + b'"when":')
    constraint = compile(Vocabulary.bytes(), schema=ORDER, style=COMPACT)
    matcher, generate = constraint.matcher(), Program._generate

    def refuse(program: Program, one: int) -> int:
        if one == cell:
            raise LimitError("too hard")
        return generate(program, one)

    monkeypatch.setattr(Program, "_generate", refuse)
    matcher.advance_bytes(start)
    prepare_all(matcher)
    matcher.advance_bytes(b'"lines":[{"more":{}}],"when"')
    with pytest.raises(LimitError, match="too hard"):
        matcher.advance_bytes(b":")
    assert matcher.text.endswith(b'"when"')
    other = constraint.matcher()
    other.advance_bytes(start + b'"count":47}')
    assert other.is_complete


# ---- interrupts, threads, memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", [Style(), Style.any()])
def test_an_interrupt_at_any_line(monkeypatch: pytest.MonkeyPatch, style: Style) -> None:
    """The text goes on with the same masks, and so do other texts of the constraint."""
    monkeypatch.setattr(
        test_interrupts,
        "STATEFUL",
        ("engine/preparation.py", "program/", "vocabulary/mask_table.py", "vocabulary/number_leaves.py"),
    )
    wanted = list_masks(compile(Vocabulary.bytes(), schema=ORDER, style=style), TEXT)
    constraint = compile(Vocabulary.bytes(), schema=ORDER, style=style)
    lines = test_interrupts.run_interrupted(lambda: prepare_all(constraint.matcher()), -1)
    assert lines > 500
    for place in range(1, lines + 1, max(1, lines // 40)):
        constraint = compile(Vocabulary.bytes(), schema=ORDER, style=style)
        matcher = constraint.matcher()
        matcher.advance_bytes(TEXT[:9])
        test_interrupts.run_interrupted(lambda one=matcher: prepare_all(one), place)  # type: ignore[misc]
        assert matcher.text == TEXT[:9]
        assert matcher.mask().tobytes() == wanted[9], place
        prepare_all(matcher)
        assert list_masks(constraint, TEXT) == wanted, place


def test_threads_prepare_and_step_at_the_same_time() -> None:
    """Program and table are shared; each thread has a state cache."""
    styles = [Style(), Style.any()] * 3
    wanted = [list_masks(compile(Vocabulary.bytes(), schema=ORDER, style=style), TEXT) for style in styles[:2]]
    for _ in range(4):
        vocabulary = Vocabulary.bytes()
        shared = [compile(vocabulary, schema=ORDER, style=style) for style in styles[:2]]

        def run(number: int, made: list[Constraint] = shared) -> list[bytes]:
            matcher, found = made[number % 2].matcher(), []
            for byte in TEXT:
                if number < 4:
                    prepare_matchers([matcher], stop_after(2 + number))
                found.append(matcher.mask().tobytes())
                matcher.advance(byte)
            return [*found, matcher.mask().tobytes()]

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(run, range(6))) == [wanted[number % 2] for number in range(6)]


def test_nothing_is_linked_while_another_thread_links() -> None:
    constraint = compile(Vocabulary.bytes(), schema=ORDER)
    matcher = constraint.matcher()
    links = len(constraint.program.links)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(constraint.program.lock.acquire).result()
        assert prepare_matchers([matcher], stop_after(10_000)) is False
        assert len(constraint.program.links) == links
        pool.submit(constraint.program.lock.release).result()
    prepare_all(matcher)
    assert len(constraint.program.links) > links


def test_a_state_cache_is_freed_after_a_preparation_that_was_stopped() -> None:
    gc.collect()
    gc.disable()
    try:
        constraint = compile(Vocabulary.bytes(), schema=ORDER)
        matcher = constraint.matcher()
        assert prepare_matchers([matcher], stop_after(4)) is True
        block = weakref.ref(matcher._state_cache)
        constraint.drop_state_caches()
        del matcher
        assert block() is None
    finally:
        gc.enable()


def test_a_restored_program_is_not_compiled_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier process linked is all that preparation uses."""
    from constrain.compilation.compile_caches import programs

    monkeypatch.setenv("CONSTRAIN_STORE", str(tmp_path))
    monkeypatch.setattr(programs, "most", 8)
    made = compile(Vocabulary.bytes(), schema=ORDER)
    list_masks(made, TEXT[:30])
    programs.flush()
    restored = compile(Vocabulary.bytes(), schema=ORDER)
    matcher = restored.matcher()
    kind = type(restored.program)
    assert kind.__name__ == "RestoredProgram"
    matcher.advance_bytes(TEXT[:12])
    prepare_all(matcher)
    assert type(restored.program) is kind
    assert list_masks(restored, TEXT) == list_masks(compile(Vocabulary.bytes(), schema=ORDER), TEXT)


def test_masks_are_arrays_of_their_own() -> None:
    """A mask that was handed out is not changed by preparation."""
    matcher = compile(Vocabulary.bytes(), schema=ORDER).matcher()
    mask = matcher.mask()
    before = mask.copy()
    prepare_all(matcher)
    assert np.array_equal(mask, before)
