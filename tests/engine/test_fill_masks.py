"""Masks of many matchers in one call are those that each would write by itself, however the work is shared out."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import LimitError, Limits, Style, TokenRefused, Vocabulary, compile, compile_grammar, fill_masks
from constrain.engine import memory_block, state_cache
from constrain.engine.batches import parallel_fill, worker_threads
from constrain.engine.matcher import Matcher
from tests import grammar_factory as make
from tests.engine.test_matcher_laws import list_tokens

WORDS = 9
"""Of a mask over single bytes and an end token."""
SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}}, "required": ["name"]},
    {"type": "array", "items": {"type": ["number", "null", "string"]}, "maxItems": 50},
    {"type": "array", "items": {"type": "integer", "minimum": -20, "maximum": 300}, "uniqueItems": True},
    {"enum": ["red", "green", 17, [1, 2], {"a": "b"}]},
]


@pytest.fixture(autouse=True)
def as_many_threads_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use threads for small batches, too, which is slower."""
    monkeypatch.setattr(parallel_fill, "LEAST_SHARE", 0)
    monkeypatch.setattr(
        parallel_fill, "choose_threads", lambda positions, count, thread, most: min(count, most or 1) or 1
    )


def walk_randomly(constraint: constrain.Constraint, seed: int, steps: int) -> Matcher:
    """A matcher after that many tokens by chance, or fewer."""
    rng, matcher = np.random.default_rng(seed), constraint.matcher()
    for _ in range(steps):
        allowed = sorted(list_tokens(matcher.mask()))
        if not allowed:
            break
        matcher.advance(int(rng.choice(allowed)))
    return matcher


def compute_masks_singly(matchers: list[Matcher], words: int = WORDS) -> np.ndarray:
    """What each says by itself, in this thread."""
    out = np.zeros((len(matchers), words), np.int32)
    for row, matcher in zip(out, matchers):
        mask = matcher.mask()
        row[: len(mask)] = mask
    return out


@settings(max_examples=25)
@given(data=st.data())
def test_each_row_is_the_mask_of_its_matcher(data: st.DataObject) -> None:
    """Mixed constraints, forked, rolled back and ended matchers; several rounds, since worker slots are reused."""
    kind = data.draw(st.sampled_from(["rules", "characters", "objects"]))
    vocabulary = data.draw(make.vocabularies(kind))
    grammars = data.draw(st.lists(getattr(make, kind).filter(make.sound), min_size=1, max_size=3))
    constraints = [compile_grammar(grammar, vocabulary) for grammar in grammars]
    matchers = [constraint.matcher() for constraint in constraints]
    words = (vocabulary.size + 31) // 32
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(0, 6))):
            matcher = data.draw(st.sampled_from(matchers))
            move = data.draw(st.sampled_from(["advance", "advance", "fork", "rollback", "new"]))
            allowed = sorted(list_tokens(matcher.mask()))
            if move == "advance" and allowed:
                matcher.advance(data.draw(st.sampled_from(allowed)))
            elif move == "rollback":
                matcher.rollback(min(2, len(matcher.tokens)))
            else:
                matchers.append(matcher.fork() if move == "fork" else matcher.constraint.matcher())
        threads = data.draw(st.sampled_from([None, 1, 2, 3, 5]))
        out = np.full((len(matchers), words + data.draw(st.integers(0, 1))), 77, np.int32)
        assert fill_masks(matchers, out, threads=threads) is out
        wanted = compute_masks_singly([matcher.fork() for matcher in matchers], out.shape[1])
        assert (out == wanted).all()
        assert (out == compute_masks_singly(matchers, out.shape[1])).all()


@pytest.fixture(scope="module")
def mixed_matchers() -> list[Matcher]:
    """Return 120 matchers of four constraints, at positions throughout the texts."""
    vocabulary = Vocabulary.bytes()
    constraints = [compile(vocabulary, schema=schema, style=Style.any()) for schema in SCHEMAS]
    return [walk_randomly(constraints[k % 4], k, k % 23) for k in range(120)]


@pytest.mark.parametrize("threads", [None, 1, 2, 4, 7, 16])
def test_any_number_of_threads(mixed_matchers: list[Matcher], threads: int | None) -> None:
    out = np.full((len(mixed_matchers), WORDS), -1, np.int32)
    fill_masks(mixed_matchers, out, threads=threads)
    assert (out == compute_masks_singly(mixed_matchers)).all()


def test_matchers_of_one_constraint_are_spread_once() -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMAS[0])
    matchers = [walk_randomly(constraint, k, k % 11) for k in range(40)]
    wanted = compute_masks_singly(matchers)
    out = np.zeros((40, WORDS), np.int32)
    places = []
    for _ in range(3):
        assert (fill_masks(matchers, out, threads=4) == wanted).all()
        places.append([matcher._state_cache for matcher in matchers])
    assert len(set(places[0])) == 4 and max(map(places[0].count, set(places[0]))) <= 12
    assert places[0] == places[1] == places[2]
    for matcher in matchers:  # and all go on as if nothing had been
        assert matcher.fork()._state_cache is matcher._state_cache
        matcher.rollback(min(1, len(matcher.tokens)))
    assert (fill_masks(matchers, out, threads=2) == compute_masks_singly(matchers)).all()


def test_rows_are_written_where_they_are_wanted(mixed_matchers: list[Matcher]) -> None:
    some = mixed_matchers[:20]
    rows = [3 * k + 1 for k in range(20)][::-1]
    wide = np.full((64, 2 * WORDS), 5, np.int32)
    out = wide[:, :WORDS]  # rows with something between them
    fill_masks(some, out, rows=rows, threads=3)
    assert (out[rows] == compute_masks_singly(some)).all()
    others = sorted(set(range(64)) - set(rows))
    assert (wide[others] == 5).all() and (wide[:, WORDS:] == 5).all()


def test_a_tensor_is_written_too(mixed_matchers: list[Matcher]) -> None:
    torch = pytest.importorskip("torch")
    out = torch.full((len(mixed_matchers), WORDS), -1, dtype=torch.int32)
    assert fill_masks(mixed_matchers, out) is out
    assert (out.numpy() == compute_masks_singly(mixed_matchers)).all()
    fill_masks(mixed_matchers[:2], out[::40], threads=2)
    assert (out[::40].numpy()[:2] == compute_masks_singly(mixed_matchers[:2])).all()


def test_a_vocabulary_without_single_bytes() -> None:
    """With tokens of several bytes: each row equals that of `mask`."""
    vocabulary = Vocabulary.from_tokens([b"a", b"ab", b"b", b"cd", None], eos_ids=[4])
    constraint = compile(vocabulary, regex="(abc|abcd|ab|bb)*")
    matchers = [walk_randomly(constraint, k, k % 5) for k in range(12)]
    out = np.full((12, 1), -1, np.int32)
    assert (fill_masks(matchers, out, threads=3) == compute_masks_singly(matchers, 1)).all()
    assert any(matcher._ended for matcher in matchers)


@pytest.mark.parametrize(("new", "threads"), [(0, 1), (63, 1), (64, 2), (95, 2), (96, 3), (130, 4), (200, 4)])
def test_as_many_threads_as_have_enough_new_masks(monkeypatch: pytest.MonkeyPatch, new: int, threads: int) -> None:
    """Masks that were computed before, and texts that have ended, need no thread."""
    monkeypatch.undo()
    constraint = compile(Vocabulary.bytes(), schema=SCHEMAS[0])
    known, fresh, ended = (constraint.matcher() for _ in range(3))
    known.mask()
    fresh.advance_bytes(b'{"na')
    for item in (*b'{"name":"A"}', 256):
        ended.advance(item)
    assert ended.is_finished
    positions = parallel_fill.list_positions([known] * 100 + [ended] * 50 + [fresh] * new)
    address, count = positions.buffer_info()
    assert parallel_fill.choose_threads(address, count, get_ident(), 4) == threads


def test_nothing_to_do() -> None:
    assert fill_masks([], np.zeros((0, WORDS), np.int32)).shape == (0, WORDS)


def test_invalid_output_arrays_and_rows_raise() -> None:
    matchers = [compile(Vocabulary.bytes(), schema=SCHEMAS[0]).matcher() for _ in range(3)]
    good = np.zeros((3, WORDS), np.int32)
    for out in (
        good[:2],
        good[0],
        good.astype(np.int64),
        good.T.copy().T,
        good.astype(">i4"),
        np.zeros((3, 8), np.int32),
    ):
        with pytest.raises(ValueError, match=r"give|rows"):
            fill_masks(matchers, out, threads=2)
    frozen = good.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fill_masks(matchers, frozen)
    with pytest.raises(TypeError, match="numpy array or a torch tensor"):
        fill_masks(matchers, good.tolist())
    for rows in ([0, 1], [0, 1, 3], [0, 1, 1], [-1, 0, 1]):
        with pytest.raises(ValueError, match="row"):
            fill_masks(matchers, good, rows=rows)
    with pytest.raises(ValueError, match="threads"):
        fill_masks(matchers, good, threads=0)
    assert not good.any()


# ---- what goes wrong meanwhile ---------------------------------------------------------------------------------------


def test_state_caches_that_are_evicted_while_masks_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """State caches so small that each is evicted many times: the masks are the same in every worker slot."""
    wanted = compute_masks_singly(
        [walk_randomly(compile(Vocabulary.bytes(), schema=SCHEMAS[1]), k, 12) for k in range(24)]
    )
    small = {slot: max(64, length // 512) for slot, length in memory_block.INITIAL_LENGTHS.items()}
    for slot in (*state_cache.HASHES.values(), state_cache.at.SEEN, state_cache.at.WIDE, state_cache.at.ROUTE):
        small[slot] = 512 if slot == state_cache.at.ROUTE else 256
    monkeypatch.setattr(memory_block, "INITIAL_LENGTHS", small)
    constraint = compile(Vocabulary.bytes(), schema=SCHEMAS[1], limits=Limits(state_cache_bytes=100_000))
    matchers = [walk_randomly(constraint, k, 12) for k in range(24)]
    before = constraint.state_cache().epoch
    for threads in (1, 3, 2):
        assert (fill_masks(matchers, np.zeros((24, WORDS), np.int32), threads=threads) == wanted).all()
    assert constraint.state_cache().epoch > before


def test_exception_of_a_worker_is_raised_in_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMAS[2])
    matchers = [walk_randomly(constraint, k, 8) for k in range(20)]

    def refuse(*_: object) -> int:
        raise LimitError("no more")

    monkeypatch.setattr(state_cache.StateCache, "run", refuse)
    monkeypatch.setattr("constrain.kernels.entry_points.fill_masks", lambda fill, c, s, r, done, *rest: done)
    with pytest.raises(LimitError, match="no more"):
        fill_masks(matchers, np.zeros((20, WORDS), np.int32), threads=2)


def test_workers_do_all_tasks_and_raise_what_failed() -> None:
    done: list[int] = []
    worker_threads.run_together([lambda k=k: done.append(k) for k in range(50)])  # type: ignore[misc]
    assert sorted(done) == list(range(50))

    def fail() -> None:
        raise KeyError("this one")

    with pytest.raises(KeyError, match="this one"):
        worker_threads.run_together([lambda: done.append(50), fail, lambda: done.append(51)])
    assert sorted(done) == list(range(52))


def test_many_threads_with_shared_constraints_and_a_growing_table() -> None:
    """Each thread fills by several workers; rules are linked, leaves numbered and rows made by all of them at once."""
    properties = {
        f"key{k}": {"type": "string", "pattern": f"^[a-{'cdefghij'[k % 8]}]{{{k % 5 + 1}}}x*$"} for k in range(90)
    }
    schema = {"type": "object", "properties": properties, "minProperties": 3}
    style = Style.any()

    def texts(seed: int) -> list[bytes]:
        rng = np.random.default_rng(seed)
        return [
            b'{"key%d": "%s' % (k, b"a" * (k % 5 + 1) + b"x" * int(rng.integers(0, 3)))
            for k in rng.integers(0, 90, 24).tolist()
        ]

    def masks(constraint: constrain.Constraint, seed: int, threads: int) -> list[bytes]:
        matchers = [constraint.matcher() for _ in range(24)]
        found = []
        for place in range(14):
            for matcher, text in zip(matchers, texts(seed)):
                if place < len(text):
                    matcher.advance_bytes(text[place : place + 1])
            found.append(fill_masks(matchers, np.zeros((24, WORDS), np.int32), threads=threads).tobytes())
        return found

    wanted = [masks(compile(Vocabulary.bytes(), schema=schema, style=style), seed, 1) for seed in range(6)]
    for _ in range(3):
        shared = compile(Vocabulary.bytes(), schema=schema, style=style)
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(lambda seed, c=shared: masks(c, seed, 3), range(6))) == wanted  # type: ignore[misc]


def test_a_refused_token_leaves_a_matcher_in_its_worker_slot() -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMAS[3])
    matchers = [constraint.matcher() for _ in range(8)]
    out = np.zeros((8, WORDS), np.int32)
    fill_masks(matchers, out, threads=4)
    for matcher in matchers:
        with pytest.raises(TokenRefused):
            matcher.advance(0)
    assert (fill_masks(matchers, out.copy(), threads=4) == out).all()


def test_matchers_of_other_threads_come_over(mixed_matchers: list[Matcher]) -> None:
    matchers = [matcher.fork() for matcher in mixed_matchers]
    wanted, out = compute_masks_singly(mixed_matchers), np.zeros((len(mixed_matchers), WORDS), np.int32)
    with ThreadPoolExecutor(1) as pool:
        assert (pool.submit(fill_masks, matchers, out, threads=3).result() == wanted).all()
        assert (pool.submit(fill_masks, matchers, out.copy(), threads=2).result() == wanted).all()
    half = [*matchers[:60], *mixed_matchers[60:]]
    assert (fill_masks(half, out * 0, threads=3) == wanted).all()


def test_a_process_that_may_not_start_threads(mixed_matchers: list[Matcher], monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller does all, and nothing is left in an inbox that nobody reads."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    wanted = compute_masks_singly([matcher.fork() for matcher in mixed_matchers])
    workers = worker_threads.WorkerThreads()
    monkeypatch.setattr(worker_threads, "_workers", lambda: workers)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            found = fill_masks(mixed_matchers, np.full(wanted.shape, -1, np.int32), threads=3)
            assert (found == wanted).all()
    assert workers.inbox.empty() and workers.count == 0
    assert (fill_masks(mixed_matchers, found, threads=3) == wanted).all()
    assert workers.count == 2
