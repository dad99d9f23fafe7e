"""Mistakes that are easy to make: each is an error that names the argument, its value and what is expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import sampling
from constrain.base.errors import SourceError, UnsupportedError
from constrain.sampling import Hmm, Proposal, SamplingTarget, Stepwise, SuccessTrie, ValidatorChecker, particles
from constrain.vocabulary.vocabulary import Vocabulary

TWO = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
PAIRS = constrain.compile(TWO, regex="a(a|b)*b")


def fit(**changed: Any) -> Hmm:
    """Fit a model of two states to one text."""
    given: dict[str, Any] = {"states": 2, "end": 2, "size": 3, "rng": np.random.default_rng(1), "rounds": 1}
    return Hmm.fit(changed.pop("texts", [[0, 1]]), **{**given, **changed})


MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: particles.Masked({"top_k": 1}), "proposal is {'top_k': 1}"),  # type: ignore[arg-type]
    (lambda: Proposal(top_k=1.5), "top_k is 1.5"),  # type: ignore[arg-type]
    (lambda: Proposal(top_k=True), "top_k is True"),
    (lambda: fit(rng=1), "rng is a int"),
    (lambda: fit(texts=["ab"]), "text 0 has the token 'a'"),
    (lambda: fit(texts=[[0], [0.5]]), "text 1 has the token 0.5"),
    (lambda: SuccessTrie("6"), "max_tokens is '6'"),  # type: ignore[arg-type]
    (lambda: SuccessTrie(6, max_bytes=1e9), "max_bytes is 1000000000.0"),  # type: ignore[arg-type]
    (lambda: ValidatorChecker(len), "vocabulary is <built-in function len>"),  # type: ignore[arg-type]
    (lambda: ValidatorChecker(TWO, accepts=0), "accepts is 0"),  # type: ignore[arg-type]
    (lambda: ValidatorChecker(TWO, viable=3), "viable is 3"),  # type: ignore[arg-type]
    (lambda: Stepwise(TWO, 0, None, bool), "feed is None"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_arguments_of_the_wrong_kind_are_named_with_their_value(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert message in str(raised.value)


def test_the_target_is_named_where_it_makes_a_markov_model_another_one() -> None:
    with pytest.raises(UnsupportedError, match="without a temperature or wrap= of the target"):
        sampling.draw(
            fit(), PAIRS, sampler="markov", rng=np.random.default_rng(1), max_tokens=6,
            target=SamplingTarget(temperature=0.5),
        )  # fmt: skip


def test_a_file_that_is_no_trie_is_refused_without_advice_to_trust_it(tmp_path: Path) -> None:
    (tmp_path / "trie.npz").write_bytes(b"hello")
    with pytest.raises(SourceError, match="is not a success trie that") as raised:
        SuccessTrie.load(tmp_path / "trie.npz", key="")
    assert "pickle" not in str(raised.value)
