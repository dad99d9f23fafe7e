"""Masks made beside the model: on the CPU all is plain copies, so what comes out can be compared; order is order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import constrain
from constrain import Vocabulary
from constrain.base.errors import UnsupportedError
from constrain.integrations.cuda import Overlap, apply_mask, decode_batch

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"ab", b"1", b"12", b"-", None], (6,))


def allowed(masks: torch.Tensor) -> np.ndarray:
    return np.unpackbits(masks.numpy().view(np.uint8), axis=1, bitorder="little")[:, :7].astype(bool)


def likeliest(logits: torch.Tensor, masks: torch.Tensor, *, seeds: torch.Tensor, steps: int) -> SimpleNamespace:
    """The likeliest allowed token, by plain means."""
    logs = torch.log_softmax(logits.double(), dim=-1)
    flags = torch.from_numpy(allowed(masks))
    best = logs.masked_fill(~flags, -torch.inf)
    tokens = torch.where(flags.any(dim=-1), best.argmax(dim=-1), -1).int()
    return SimpleNamespace(tokens=tokens, logprobs=torch.zeros(len(tokens)).double(), logmasses=best.logsumexp(dim=-1))


class Model:
    """Logits that depend on all tokens so far. calls: what it was given."""

    def __init__(self, rows: int) -> None:
        self.weights = torch.from_numpy(np.random.default_rng(2).normal(size=(64, 7)).astype(np.float32))
        self.state, self.calls = torch.arange(rows) * 7, 0

    def __call__(self, tokens: torch.Tensor | None) -> torch.Tensor:
        self.calls += 1
        if tokens is not None:
            self.state = (self.state * 5 + tokens.long() + 1) % 64
        return self.weights[self.state]


def test_decode_writes_what_a_plain_loop_writes() -> None:
    """Rows of different constraints that end at different times; sums over the steps of each."""
    forms = [{"regex": "[ab]{3,9}"}, {"regex": "(12|1-)*b"}, {"regex": "a"}]
    constraints = [constrain.compile(VOCABULARY, **form) for form in forms]
    got = decode_batch(
        Model(3), [one.matcher() for one in constraints], "cpu", max_tokens=20,
        seeds=torch.zeros(3, dtype=torch.int64), sample=likeliest,
    )  # fmt: skip
    model, matchers = Model(3), [one.matcher() for one in constraints]
    masses, ended, last = np.zeros(3), [False] * 3, None
    for _ in range(20):
        logits, last = model(last), torch.full((3,), 6)
        for row, matcher in enumerate(matchers):
            if not ended[row]:
                found = likeliest(logits[row : row + 1], torch.from_numpy(matcher.mask()[None]), seeds=last, steps=0)
                masses[row] += float(found.logmasses)
                last[row] = found.tokens[0]
                matcher.advance(int(last[row]))
                ended[row] = int(last[row]) == 6
        if all(ended):
            break
    assert got.tokens == [[token for token in matcher.tokens if token != 6] for matcher in matchers]
    assert got.ended == ended == [True] * 3
    assert got.logmasses == pytest.approx(masses) and not got.logprobs.any()
    assert len({len(tokens) for tokens in got.tokens}) > 1


def test_the_host_prepares_while_it_would_wait_for_tokens() -> None:
    """Until the tokens are there, and the texts are the same."""

    class Slow(Overlap):
        def __init__(self, units: int) -> None:
            super().__init__(2, 1, "cpu")
            self.units, self.asked = units, 0

        def is_fetched(self) -> bool:
            assert super().is_fetched(), "on the CPU there is nothing to wait for"
            self.asked += 1
            return self.asked > self.units

    texts, asked = [], []
    for units in (0, 1000):
        grammar = 'root ::= "a" b\nb ::= "a" b "b" | "b" c\nc ::= "b" c "-" | "1" d\nd ::= "12" d "a" | "-"'
        constraint = constrain.compile(VOCABULARY, form=constrain.gbnf(grammar))
        overlap = Slow(units)
        got = decode_batch(
            Model(2), [constraint.matcher() for _ in range(2)], "cpu", max_tokens=9, overlap=overlap,
            seeds=torch.zeros(2, dtype=torch.int64), sample=likeliest,
        )  # fmt: skip
        texts.append(got.tokens)
        asked.append(overlap.asked)
    assert texts[0] == texts[1]
    assert 0 < asked[0] < asked[1] < 1000, "a unit for each question, and an end when nothing is left"


def test_decode_stops_in_time_and_reports_rows_without_tokens() -> None:
    one = constrain.compile(VOCABULARY, regex="[ab]{3,9}")
    model = Model(1)
    got = decode_batch(
        model, [one.matcher()], "cpu", max_tokens=2, seeds=torch.zeros(1, dtype=torch.int64), sample=likeliest
    )
    assert not got.ended[0] and 2 <= sum(len(VOCABULARY.tokens[token] or b"") for token in got.tokens[0]) <= 4
    assert model.calls == 2, "no forward pass in vain"

    def finds_none(logits: torch.Tensor, masks: torch.Tensor, **_: object) -> SimpleNamespace:
        return SimpleNamespace(tokens=torch.tensor([-1]), logprobs=torch.zeros(1), logmasses=torch.zeros(1))

    with pytest.raises(ValueError, match="row 0"):
        decode_batch(Model(1), [one.matcher()], "cpu", max_tokens=2, seeds=torch.zeros(1), sample=finds_none)


def test_masks_stay_until_those_of_the_next_step_are_requested() -> None:
    """Two buffers: the next masks can be written and sent while the last ones are still in use."""
    overlap = Overlap(2, 1, "cpu")
    overlap.buffer()[:] = 1
    overlap.send()
    first = overlap.masks()
    overlap.buffer()[:] = 2
    overlap.send()
    assert first.tolist() == [[1], [1]] and overlap.masks().tolist() == [[2], [2]]
    overlap.fetch(torch.tensor([5, 6], dtype=torch.int32))
    assert overlap.fetched().tolist() == [5, 6]


class Card:
    """torch.cuda as a trace: what each stream waits for, and when the host does."""

    def __init__(self) -> None:
        self.trace: list[tuple[object, ...]] = []
        self.main = self.stream("main")
        self.names = iter(("side",))
        self.number = 0

    def stream(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, wait_event=lambda event: self.trace.append((name, "waits for", event.at)))

    def event(self) -> SimpleNamespace:
        one = SimpleNamespace(at=None)

        def record(stream: SimpleNamespace) -> None:
            self.number += 1
            one.at = self.number
            self.trace.append((stream.name, "records", one.at))

        one.record = record
        one.synchronize = lambda: self.trace.append(("host", "waits for", one.at))
        return one


def test_the_host_waits_for_tokens_and_old_buffers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of events on a card, on paper: uploads wait for what used their place, the model's stream for uploads,
    and the host for nothing that was recorded behind the model."""
    card = Card()
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: card.stream(next(card.names)))
    monkeypatch.setattr(torch.cuda, "Event", card.event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: card.main)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: torch.inference_mode(False))
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    real = torch.zeros

    def zeros(*shape: object, pin_memory: bool = False, device: object = None, **more: object) -> torch.Tensor:
        return real(*shape, **more)

    monkeypatch.setattr(torch, "zeros", zeros)
    overlap = Overlap(1, 1, "cuda")
    for step in range(4):
        overlap.buffer()
        overlap.send()
        overlap.masks()
        card.trace.append(("main", "applies masks", step))
        overlap.fetch(torch.zeros(1, dtype=torch.int32))
        card.trace.append(("main", "runs the model", step))
        overlap.fetched()
    for place, (_, does, what) in enumerate(card.trace):
        if does == "runs the model":
            assert card.trace[place + 1][0] == "host", "the host waits, once the model was launched, for the tokens"
            copied = card.trace.index(("side", "records", card.trace[place + 1][2]))
            awaited = card.trace[copied - 1]
            assert awaited[:2] == ("side", "waits for"), "they are copied when they are drawn"
            drawn = card.trace.index(("main", "records", awaited[2]))
            assert card.trace.index(("main", "applies masks", what)) < drawn < place, "and not after the model"
        if does == "applies masks":
            waited = card.trace[place - 1]
            assert waited[:2] == ("main", "waits for"), "masks are waited for where they are used"
            sent = card.trace.index(("side", "records", waited[2]))
            used = [one for one in card.trace[:sent] if one[:2] == ("side", "waits for")][-1][2]
            if what >= 2:
                last_use = card.trace.index(("main", "applies masks", what - 2))
                assert card.trace.index(("main", "records", used)) > last_use, "no mask is overwritten in use"


def test_kernels_are_for_cards() -> None:
    """Outside the simulator, tensors of the CPU are not taken."""
    with pytest.raises((ValueError, UnsupportedError), match="card"):
        apply_mask(torch.zeros(1, 4), torch.zeros(1, 1, dtype=torch.int32))
