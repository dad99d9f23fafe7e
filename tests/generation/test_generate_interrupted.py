"""Exceptions out of the model, the `stream` callback or the check: what is written afterwards is what would be anyway.

Any exception may come: of the caller's own code, or KeyboardInterrupt in the middle of a forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from constrain import Constraint, ConstraintLogitsProcessor, compile, generate, sampling
from constrain.base.errors import ConstrainError
from constrain.sampling import SAMPLERS
from tests.markov_factory import TWO, ChainModel
from tests.model_factory import build_model

REGEX = "(b*a){3}b"
GIVEN: dict[str, Any] = {"regex": REGEX, "tokenizer": TWO, "max_tokens": 8, "seed": 3, "n": 3}
ERRORS = (KeyboardInterrupt, MemoryError, RuntimeError, GeneratorExit)


class Failing(ChainModel):
    """A ChainModel that raises `error` at the call of number `at`, and goes on afterwards."""

    error: type[BaseException] = RuntimeError
    at, calls = 0, 0

    def next_logprobs(self, prefixes: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return super().next_logprobs(prefixes)


def failing(error: type[BaseException], at: int) -> Failing:
    lm = Failing.random(TWO, 1, 4)
    assert isinstance(lm, Failing)
    lm.error, lm.at = error, at
    return lm


def raising(error: type[BaseException], at: int) -> Callable[..., bool]:
    """A callback that raises at its call of number `at`."""
    calls = count(1)

    def call(*_: object) -> bool:
        if next(calls) == at:
            raise error
        return True

    return call


def drawn(lm: Any, constraint: Constraint, sampler: str) -> list[tuple[tuple[int, ...], float]]:
    fresh: dict[str, Any] = {"twist": "fresh"} if sampler in ("smc", "pimh") else {}  # learn nothing from other calls
    draws = sampling.draw(lm, constraint, sampler=sampler, n=3, rng=np.random.default_rng(7), max_tokens=8, **fresh)
    return [(tuple(one.tokens), one.log_weight) for one in draws]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("at", [1, 2, 4, 7])
def test_an_exception_in_the_model_call_leaves_no_state(error: type[BaseException], at: int) -> None:
    lm = failing(error, at)
    wanted = generate(ChainModel.random(TWO, 1, 4), **GIVEN)
    with pytest.raises(error):
        generate(lm, **GIVEN)
    assert generate(lm, **GIVEN) == wanted


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_gives_the_same_after_an_exception(sampler: str) -> None:
    """With the same Constraint and the same model, at any of the first calls."""
    constraint = compile(TWO, regex=REGEX)
    if sampler == "markov":
        pytest.skip("reads the law of the model once, and asks for no rows")
    wanted = drawn(ChainModel.random(TWO, 1, 4), compile(TWO, regex=REGEX), sampler)
    assert wanted
    for at in (1, 2, 3, 5):
        lm = failing(KeyboardInterrupt, at)
        try:
            drawn(lm, constraint, sampler)
        except KeyboardInterrupt:
            assert lm.calls == at
        else:
            assert lm.calls < at
        assert drawn(lm, constraint, sampler) == wanted


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("at", [1, 2, 5])
def test_an_exception_in_the_stream_reaches_the_caller_and_no_later_text(error: type[BaseException], at: int) -> None:
    lm = ChainModel.random(TWO, 1, 4)
    wanted = generate(lm, **GIVEN)
    with pytest.raises(error):
        generate(lm, **GIVEN, stream=raising(error, at))
    pieces: list[Any] = []
    assert generate(lm, **GIVEN, stream=pieces.append) == wanted
    for sample, one in enumerate(wanted):
        assert "".join(piece.text for piece in pieces if piece.sample == sample) == one.text


@pytest.mark.parametrize("error", ERRORS)
def test_an_exception_in_the_check_reaches_the_caller(error: type[BaseException]) -> None:
    """As the cause of a ConstrainError, unless it is one that asks to stop."""
    lm = ChainModel.random(TWO, 1, 4)
    wanted = generate(lm, **GIVEN, sampler="exact", check=lambda text: True)
    with pytest.raises((error, ConstrainError)) as caught:
        generate(lm, **GIVEN, sampler="exact", check=raising(error, 2))
    assert isinstance(caught.value.__cause__ if issubclass(error, Exception) else caught.value, error)
    assert generate(lm, **GIVEN, sampler="exact", check=lambda text: True) == wanted


def test_a_closed_generator_that_draws_leaves_no_state() -> None:
    """Texts from a generator, which is closed in the middle of a text by an exception in the stream."""
    lm = ChainModel.random(TWO, 1, 4)
    constraint = compile(TWO, regex=REGEX)

    def texts() -> Iterator[bytes]:
        matcher = constraint.matcher()
        rng = np.random.default_rng(5)
        while not matcher.is_finished:
            allowed = np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))
            token = int(rng.choice(allowed))
            matcher.advance(token)
            yield matcher.mask().tobytes()

    wanted = list(texts())
    for taken in range(len(wanted)):
        partly = texts()
        for _ in range(taken):
            next(partly)
        partly.close()
        assert list(texts()) == wanted
    assert generate(lm, **GIVEN) == generate(ChainModel.random(TWO, 1, 4), **GIVEN)


# ---- transformers ------------------------------------------------------------------------------------------------


PREFIXES: list[list[list[int]]] = [
    [[]], [[5]], [[5, 6], [5, 6, 7]], [[5, 9], [5, 8]], [[5, 9, 1], [5, 8, 2]], [[5, 6, 7, 8]], [[4]],
]  # fmt: skip


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "t5"])
def test_a_forward_pass_that_was_interrupted_leaves_no_wrong_keys(family: str) -> None:
    """At each layer of each pass: rows after it are those of a model that was never interrupted."""
    torch = pytest.importorskip("torch")
    loaded = build_model(family)
    fresh = [loaded.on([3, 4]).next_logprobs(asked) for asked in PREFIXES]
    # Submodules that compute, in the order in which a pass runs them; an exception after one leaves its layer longer.
    parts = [part for name, part in loaded.model.named_modules() if name.endswith(("mlp", "layer.1", "layer.2"))]
    assert len(parts) >= 2
    for part in parts:
        for step in range(len(PREFIXES)):
            model = loaded.on([3, 4])
            for asked in PREFIXES[:step]:
                model.next_logprobs(asked)
            handle = part.register_forward_hook(lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            threads = torch.get_num_threads()
            try:
                model.next_logprobs(PREFIXES[step])
            except KeyboardInterrupt:
                assert torch.get_num_threads() == threads
            finally:
                handle.remove()
            for asked, wanted in zip(PREFIXES[step:] + PREFIXES, fresh[step:] + fresh):
                np.testing.assert_allclose(model.next_logprobs(asked), wanted, atol=1e-4)


def test_a_processor_that_was_interrupted_follows_the_ids_again() -> None:
    """`model.generate` stopped by an exception in a later processor; the next call with the same ids masks the same."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    loaded = build_model("llama")
    constraint = compile(loaded.vocabulary, regex="[a-c]{2,8}")

    class Stop(transformers.LogitsProcessor):
        def __init__(self, at: int) -> None:
            self.left = at

        def __call__(self, ids: Any, scores: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return scores

    def run(at: int) -> list[int]:
        torch.manual_seed(11)
        done = loaded.model.generate(
            torch.tensor([[3, 4]]), max_new_tokens=12, do_sample=True,
            logits_processor=[ConstraintLogitsProcessor(constraint), Stop(at)],
        )  # fmt: skip
        return done[0].tolist()

    wanted = run(-1)
    for at in (1, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            run(at)
        assert run(-1) == wanted
