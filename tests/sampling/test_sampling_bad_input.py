"""Bad input for every sampler of the table: a clear error or a defined answer, and nothing hangs.

The watchdog is no clock but a bound on how often the model may be asked: `Table` gives up far above what any sampler
needs here. A clear error is a ConstrainError, ValueError or TypeError that names what was wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import constrain
from constrain import sampling
from constrain.base.errors import (
    ConstrainError,
    LimitError,
    TokenRefused,
    UnsatisfiableError,
    UnsupportedError,
    VocabularyError,
)
from constrain.sampling import SAMPLERS, Draws, sampler_choice
from constrain.sampling.checkers import ValidatorChecker
from constrain.sampling.core.sampler_arguments import options_of
from constrain.sampling.particles import Awrs
from constrain.sampling.research import markov_exact
from constrain.sampling.success_trie import SuccessTrie
from constrain.vocabulary.vocabulary import Vocabulary

TWO = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
LANGUAGE = constrain.compile(TWO, regex="(b*a){2}b+")
FEW = constrain.compile(TWO, regex="ab|ba|bb")
CLEAR = (ConstrainError, ValueError, TypeError)
MOST_CALLS = 20_000
"""Of the model in one call of a sampler: the chain that looks in vain for a first text needs 3,000."""
OF_ONE_KIND = [name for name in SAMPLERS if name != "markov"]
"""Those that ask the model by `next_logprobs` and by nothing else."""
WITH_JUDGES = [name for name in SAMPLERS if {"accepts", "viable"} <= set(options_of(SAMPLERS[name].draw))]

Rows = NDArray[np.floating[Any]]


class Hangs(BaseException):
    """The watchdog. No sampler may catch it."""


class Table:
    """A Markov model over TWO that counts its calls. spoil: what becomes of its answers (float64 [n, 3])."""

    vocabulary: Vocabulary

    def __init__(self, spoil: Callable[[Rows, list[list[int]]], Any] = lambda rows, prefixes: rows) -> None:
        law = np.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]])
        self.logs: Any = np.log(law)
        self.start, self.spoil, self.calls = 3, spoil, 0

    def follow(self, state: int, tokens: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        return tokens.astype(np.int32)

    def state(self, tokens: list[int]) -> int:
        return tokens[-1] if len(tokens) else self.start

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise Hangs
        return self.spoil(self.logs[[self.state(prefix) for prefix in prefixes]], prefixes)


def run(sampler: str, lm: Any = None, constraint: Any = LANGUAGE, **given: Any) -> Draws:
    """A sampler with what is usual, but for what is given."""
    usual = {"n": 3, "rng": np.random.default_rng(1), "max_tokens": 8}
    return sampling.draw(Table() if lm is None else lm, constraint, sampler=sampler, **{**usual, **given})


def assert_defined(draws: Draws, constraint: Any = LANGUAGE) -> None:
    """Weights are numbers below infinity, and what has one is a text of the language with its probability."""
    for one in draws:
        assert not math.isnan(one.log_weight)
        assert one.log_weight < math.inf
        assert not math.isnan(one.logprob)
        if one.log_weight > -math.inf:
            matcher = constraint.matcher()
            for token in one.tokens:
                matcher.advance(token)
            assert matcher.is_complete


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_samplers_answer_valid_input(sampler: str) -> None:
    assert_defined(run(sampler))


# ---- arguments -------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "n below 0": ({"n": -1}, ValueError, "n must be 0 or more, not -1"),
    "n a float": ({"n": 2.0}, TypeError, "n is 2.0: it is a whole number"),
    "n a truth": ({"n": True}, TypeError, "n is True"),
    "n None": ({"n": None}, TypeError, "n is None"),
    "max_tokens 0": ({"max_tokens": 0}, LimitError, "not even an end token"),
    "max_tokens below 0": ({"max_tokens": -3}, LimitError, "max_tokens is -3"),
    "max_tokens a text": ({"max_tokens": "8"}, TypeError, "max_tokens is '8'"),
    "max_tokens inf": ({"max_tokens": math.inf}, TypeError, "max_tokens is inf"),
    "rng a seed": ({"rng": 7}, TypeError, "rng is a int: give numpy.random.default_rng"),
    "rng None": ({"rng": None}, TypeError, "rng is a NoneType"),
    "rng of old": ({"rng": np.random.RandomState(1)}, TypeError, "rng is a RandomState"),
    "rng a class": ({"rng": np.random.Generator}, TypeError, "rng is a type"),
    "lm a name": ({"lm": "demo"}, TypeError, "lm is a str: it must have a method next_logprobs"),
    "lm an array": ({"lm": np.zeros(3)}, TypeError, "lm is a ndarray"),
    "constraint a text": ({"constraint": "[ab]*"}, TypeError, "constraint is a str: make one with constrain.compile"),
    "constraint a vocabulary": ({"constraint": TWO}, TypeError, "constraint is a Vocabulary"),
    "an option misspelled": ({"partciles": 4}, TypeError, "has no option 'partciles'; it has "),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_wrong_arguments_are_named(sampler: str, wrong: str) -> None:
    given, error, says = WRONG[wrong]
    lm = given.get("lm", Table())
    with pytest.raises(error, match=says):
        run(sampler, **{"lm": lm, **given})
    assert getattr(lm, "calls", 0) == 0, "before the model is asked"


OPTIONS: dict[str, list[Any]] = {
    "particles": [0, -1, 2.5], "attempts": [0, -5, "9"], "together": [0, -1], "prefixes": [0, -1, None],
    "budget": [0, -2, 1.5], "burn": [-1, 0.5], "thin": [0, None], "threshold": [-0.1, 1.5, math.nan],
    "most_states": [0, "9"], "seconds": ["1", math.nan, True], "masks": ["never again", None], "order": ["masks", None],
    "resample": ["magic", 5],
}  # fmt: skip
PLACES = [(name, option, bad) for name in SAMPLERS for option in options_of(SAMPLERS[name].draw)
          for bad in OPTIONS.get(option, [])]  # fmt: skip


@pytest.mark.parametrize(("sampler", "option", "bad"), PLACES)
def test_options_without_sense_are_refused(sampler: str, option: str, bad: Any) -> None:
    lm = Table()
    with pytest.raises(CLEAR, match=option if option != "resample" else "resampl"):
        run(sampler, lm, **{option: bad})
    assert lm.calls == 0


@pytest.mark.parametrize(
    ("sampler", "option"), [("masked", "proposal"), ("smc", "move"), ("pimh", "move"), ("auto", "repeats")]
)
def test_options_of_another_kind_are_named(sampler: str, option: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{option} is 3"):
        run(sampler, **{option: 3})


@pytest.mark.parametrize("given", [{"max_tokens": "x"}, {"max_tokens": 2.5}, {"max_tokens": 5, "max_bytes": 1e6}])
def test_a_trie_has_whole_limits(given: Any) -> None:
    with pytest.raises(TypeError, match=f"^{list(given)[-1]} is .*whole number"):
        SuccessTrie(**given)


def test_every_number_among_the_options_is_in_the_table() -> None:
    """A sampler that gets a new budget has to say here what it does with 0."""
    others = {"trie", "accepts", "viable", "method", "proposal", "move", "twist", "critic"}
    assert {option for name in SAMPLERS for option in options_of(SAMPLERS[name].draw)} <= {*OPTIONS, *others}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_draws_are_no_draws(sampler: str) -> None:
    draws = run(sampler, n=0)
    assert len(draws) == 0
    assert draws.log_z == -math.inf
    assert draws.ess == 0
    assert draws.weights.shape == (0,)
    assert not any(math.isnan(value) for value in draws.stats.values())


@pytest.mark.parametrize("sampler", ["exact", "awrs"])
def test_a_time_that_is_over_is_a_limit(sampler: str) -> None:
    for seconds in (0, -1.0):
        with pytest.raises(LimitError, match="seconds"):
            run(sampler, seconds=seconds)


# ---- the model -------------------------------------------------------------------------------------------------------


def everywhere(value: float) -> Callable[[Rows, Any], Rows]:
    return lambda rows, prefixes: np.full_like(rows, value)


def at(column: int, value: float) -> Callable[[Rows, Any], Rows]:
    """One number of each row is another."""

    def spoil(rows: Rows, prefixes: Any) -> Rows:
        rows = rows.copy()
        rows[:, column] = value
        return rows

    return spoil


ROWS: dict[str, tuple[Callable[[Rows, Any], Any], str]] = {
    "all NaN": (everywhere(math.nan), "NaN"),
    "one NaN": (at(1, math.nan), "NaN"),
    "all -inf": (everywhere(-math.inf), "all minus infinity"),
    "+inf": (at(0, math.inf), "go up to inf"),
    "logits": (lambda rows, prefixes: rows + 5, "go up to 4"),
    "all 0": (everywhere(0.0), "sum"),
    "twice a law": (lambda rows, prefixes: rows + math.log(2), "go up to|sum"),
    "one row": (lambda rows, prefixes: rows[0], "rows of at least 3"),
    "a row too many": (lambda rows, prefixes: np.concatenate([rows, rows[:1]]), "rows of at least 3"),
    "a row too few": (lambda rows, prefixes: rows[1:], "rows of at least 3"),
    "a column too few": (lambda rows, prefixes: rows[:, :-1], "rows of at least 3"),
    "turned": (lambda rows, prefixes: np.zeros((3, 7)), "rows of at least 3"),
    "three axes": (lambda rows, prefixes: rows[None], "rows of at least 3"),
    "whole numbers": (lambda rows, prefixes: rows.astype(int), "int64.*rows of at least 3"),
    "complex": (lambda rows, prefixes: rows.astype(complex), "complex128.*rows of at least 3"),
    "texts": (lambda rows, prefixes: rows.astype(str), "rows of at least 3"),
    "ragged": (lambda rows, prefixes: [[0.0] * (i + 1) for i in range(2)], "rows of at least 3"),
    "None": (lambda rows, prefixes: None, "rows of at least 3"),
    "a number": (lambda rows, prefixes: -1.0, "rows of at least 3"),
}


@pytest.mark.parametrize("bad", ROWS)
@pytest.mark.parametrize("sampler", OF_ONE_KIND)
def test_rows_that_are_not_distributions_are_errors(sampler: str, bad: str) -> None:
    """From the first one on, and where only later ones are bad."""
    spoil, says = ROWS[bad]
    with pytest.raises(ValueError, match=says):
        run(sampler, Table(spoil), n=4)
    later = Table(lambda rows, prefixes: spoil(rows, prefixes) if prefixes[0] else rows)
    with pytest.raises(ValueError, match=says):
        run(sampler, later, n=4)


@pytest.mark.parametrize("bad", ["one NaN", "all NaN", "all -inf", "+inf", "logits"])
@pytest.mark.parametrize("left", [1, 5])
@pytest.mark.parametrize("move", ["awrs", "smc"])
def test_long_rows_that_are_not_distributions_are_errors_with_their_place(move: str, left: int, bad: str) -> None:
    """AWRS looks at a long row when it draws from it, and only at end tokens where nothing else is left."""
    size = 1500
    vocabulary = Vocabulary.from_tokens([b"%d," % i for i in range(size - 1)] + [None], eos_ids=(size - 1,))
    spoil, says = ROWS[bad]

    class Flat:
        def next_logprobs(self, prefixes: list[list[int]]) -> Rows:
            rows = np.full((len(prefixes), size), -math.log(size))
            return spoil(rows + 3, prefixes) if prefixes[0] else rows

    constraint = constrain.compile(vocabulary, regex="([0-9]+,)*")
    given: dict[str, Any] = {"sampler": move, "n": 4, "rng": np.random.default_rng(0), "max_tokens": 1 + left}
    if move == "smc":
        given |= {"move": Awrs(), "twist": None}
    with pytest.raises(ValueError, match=says.replace("go up to 4", r"go up to|sum to") + r".*\(after 1 tokens\)"):
        sampling.draw(Flat(), constraint, **given)


@pytest.mark.parametrize("bad", ROWS)
def test_the_pilot_of_auto_validates_rows(bad: str) -> None:
    """As the samplers do, before it shares them among equal prefixes."""
    spoil, says = ROWS[bad]
    lm = sampler_choice.SharedRows(Table(spoil), TWO.size)
    with pytest.raises(ValueError, match=says):
        lm.next_logprobs([[], [], [0], [0]])


@pytest.mark.parametrize("sampler", OF_ONE_KIND)
def test_rows_that_sum_to_less_are_found_at_the_start(sampler: str) -> None:
    with pytest.raises(ValueError, match=r"do not sum to 1 but to 0\.5"):
        run(sampler, Table(lambda rows, prefixes: rows - math.log(2)))
    later = Table(lambda rows, prefixes: rows - math.log(2) if prefixes[0] else rows)
    try:
        assert_defined(run(sampler, later))
    except ValueError as error:
        assert "sum to" in str(error)


@pytest.mark.parametrize(
    "bad", ["all NaN", "one NaN", "all -inf", "+inf", "logits", "all 0", "a column too few", "texts"]
)
def test_a_markov_model_is_looked_at_too(bad: str) -> None:
    spoil, _ = ROWS[bad]
    lm = Table()
    lm.logs = spoil(lm.logs, [[]])
    with pytest.raises(ValueError, match=r"NaN|minus infinity|go up to|sum to|at least 3"):
        run("markov", lm)


def test_half_precision_and_padding_are_no_mistake() -> None:
    for spoil in (
        lambda rows, prefixes: rows.astype(np.float16),
        lambda rows, prefixes: rows.astype(np.float32),
        lambda rows, prefixes: np.pad(rows, ((0, 0), (0, 5)), constant_values=-math.inf),
        lambda rows, prefixes: rows.tolist(),
    ):
        for sampler in OF_ONE_KIND:
            assert_defined(run(sampler, Table(spoil)))


@pytest.mark.parametrize("sampler", OF_ONE_KIND)
def test_exceptions_of_the_model_propagate(sampler: str) -> None:
    class OutOfMemory(Exception):
        pass

    def spoil(rows: Rows, prefixes: Any) -> Rows:
        raise OutOfMemory("device 0")

    for when in (0, 1):
        lm = Table(lambda rows, prefixes, when=when: spoil(rows, prefixes) if len(prefixes[0]) >= when else rows)
        with pytest.raises(OutOfMemory, match="device 0"):
            run(sampler, lm)


def test_markov_takes_markov_models_only() -> None:
    class Plain:
        def next_logprobs(self, prefixes: list[list[int]]) -> Rows:
            return Table().next_logprobs(prefixes)

    with pytest.raises(UnsupportedError, match="last few tokens"):
        run("markov", Plain())


# ---- validators and constraints --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["accepts", "viable"])
@pytest.mark.parametrize("sampler", WITH_JUDGES)
def test_a_validator_that_raises_is_named_with_its_text(sampler: str, which: str) -> None:
    def broken(text: bytes) -> bool:
        raise KeyError(text.decode())

    with pytest.raises(ConstrainError, match=r"failed on b'.*': KeyError") as caught:
        run(sampler, **{which: broken})
    assert caught.value.hint
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("which", ["accepts", "viable"])
@pytest.mark.parametrize("sampler", WITH_JUDGES)
def test_a_validator_that_is_none_is_refused(sampler: str, which: str) -> None:
    lm = Table()
    with pytest.raises(TypeError, match=f"{which} is 5"):
        run(sampler, lm, **{which: 5})
    assert lm.calls == 0


@pytest.mark.parametrize("sampler", WITH_JUDGES)
@pytest.mark.parametrize("first", [False, True])
def test_a_validator_that_contradicts_itself_hangs_nobody(sampler: str, first: bool) -> None:
    """It says one thing and then the other, of every text; prefixes are refused whose continuations are accepted."""
    said: dict[bytes, bool] = {}

    def fickle(text: bytes) -> bool:
        said[text] = not said.get(text, not first)
        return said[text]

    for given in ({"accepts": fickle}, {"viable": fickle}, {"accepts": fickle, "viable": fickle}):
        said.clear()
        try:
            assert_defined(run(sampler, n=6, **given))
        except CLEAR as error:
            assert str(error)
    odd = {"viable": lambda text: len(text) != 1, "accepts": lambda text: True}
    try:
        assert all(one.log_weight == -math.inf for one in run(sampler, **odd)), "no text goes through a refused prefix"
    except LimitError as error:
        assert "no text" in str(error)


class Delegate:
    """A Constraint or Matcher, with one method that does something else."""

    def __init__(self, inner: Any, name: str, other: Callable[..., Any]) -> None:
        self.inner, self.name, self.other = inner, name, other

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def matcher(self) -> Any:
        return Delegate(self.inner.matcher(), self.name, self.other)

    def fork(self) -> Any:
        return Delegate(self.inner.fork(), self.name, self.other)

    def advance(self, token: int) -> None:
        if self.name == "advance":
            self.other(token)
        self.inner.advance(token)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_constraint_that_refuses_what_it_allowed_is_an_error(sampler: str) -> None:
    def refuse(token: int) -> None:
        raise TokenRefused(f"token {token} is refused")

    with pytest.raises(ConstrainError, match=r"token . is refused"):
        run(sampler, constraint=Delegate(LANGUAGE, "advance", refuse))


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "awrs"])
def test_checkers_without_masks_are_for_awrs(sampler: str) -> None:
    checker = ValidatorChecker(TWO, accepts=lambda text: text == b"ab")
    with pytest.raises(UnsupportedError, match=f"{sampler}' needs masks, which a ValidatorChecker does not compute"):
        run(sampler, constraint=checker)
    assert_defined(run("awrs", constraint=checker), FEW)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_constraint_of_another_vocabulary_is_an_error(sampler: str) -> None:
    """Its masks would be of other tokens, and its texts not those of the model."""
    model, turned = Table(), Vocabulary.from_tokens([b"b", b"a", None], eos_ids=[2])
    model.vocabulary = TWO
    constraint = constrain.compile(turned, regex="(b*a){2}b+")
    given: dict[str, Any] = {"rng": np.random.default_rng(1), "max_tokens": 9}
    with pytest.raises(VocabularyError, match="another vocabulary than the model's"):
        sampling.draw(model, constraint, sampler=sampler, n=2, **given)
    with pytest.raises(VocabularyError, match="another vocabulary than the model's"):
        sampling.estimate(model, constraint, sampler=sampler, n=20, **given)
    assert not model.calls


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if "trie" in options_of(SAMPLERS[name].draw)])
def test_a_trie_is_of_one_constraint(sampler: str) -> None:
    """What was learnt under another one would be wrong in silence. The same source, compiled again, is the same."""

    def trie(**given: Any) -> SuccessTrie:
        out = SuccessTrie(8)
        run(sampler, trie=out, **given)
        return out

    run(sampler, trie=trie(), constraint=constrain.compile(TWO, regex="(b*a){2}b+"))
    run(sampler, trie=trie(accepts=lambda text: True), accepts=lambda text: True)
    turned = Vocabulary.from_tokens([b"b", b"a", None], eos_ids=[2])
    for given, other, says in (
        ({}, {"constraint": FEW}, "under another constraint"),
        ({}, {"constraint": constrain.compile(turned, regex="(b*a){2}b+")}, "for another vocabulary"),
        ({}, {"accepts": lambda text: True}, "without a validator"),
        ({}, {"checker": lambda text: True}, "without a validator"),
        ({"viable": lambda text: True}, {}, "with a validator"),
    ):
        with pytest.raises(ValueError, match=f"the trie was learnt {says}"):
            run(sampler, trie=trie(**given), **other)
    for wrong in (5, "trie.npz"):
        with pytest.raises(TypeError, match="trie is"):
            run(sampler, trie=wrong)


# ---- languages -------------------------------------------------------------------------------------------------------

NOTHING: dict[str, dict[str, Any]] = {
    "out of time": {"max_tokens": 3},
    "not even one token": {"max_tokens": 1},
    "no end": {"lm": Table(at(2, -math.inf))},
    "no a": {"lm": Table(at(0, -math.inf))},
}


@pytest.mark.parametrize("why", NOTHING)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_without_any_text_draws_have_no_weight_or_an_error_is_raised(sampler: str, why: str) -> None:
    """A sampler with one attempt a draw reports failure by weights; one that repeats until success raises."""
    given = {**NOTHING[why], **({"attempts": 50} if sampler == "pimh" else {})}
    lm = Table(given.pop("lm", Table()).spoil)
    rows = lm.next_logprobs([[0], [1], [2], []])
    lm = Table(lambda r, prefixes: r)
    with np.errstate(divide="ignore"):
        lm.logs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    try:
        draws = run(sampler, lm, **given)
    except LimitError as error:
        assert SAMPLERS[sampler].target != "masked"
        assert "no text" in error.cause or "the shortest text found takes 4 tokens" in error.cause
        assert "max_tokens" in error.hint
        return
    assert draws.log_z == -math.inf
    assert draws.ess == 0
    assert all(one.logprob == -math.inf == one.log_weight for one in draws)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_more_draws_than_texts(sampler: str) -> None:
    """All of them come, as often as they like, or once each."""
    draws = run(sampler, constraint=FEW, n=60)
    assert_defined(draws, FEW)
    assert {one.text for one in draws if one.log_weight > -math.inf} == {"ab", "ba", "bb"}
    assert len(draws) == (3 if sampler == "without_replacement" else 60)
    if len(draws) == 3:
        rows = np.exp(Table().logs)
        assert math.exp(draws.log_z) * 3 == pytest.approx(
            3
            * (rows[3, 0] * rows[0, 1] * rows[1, 2] + rows[3, 1] * (rows[1, 0] * rows[0, 2] + rows[1, 1] * rows[1, 2]))
        )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_tightest_bound(sampler: str) -> None:
    """max_tokens at which exactly one text fits, and the text that is nothing with one token."""
    tight = run(sampler, n=8, max_tokens=4)
    assert {one.text for one in tight if one.log_weight > -math.inf} <= {"aab"}
    nothing = run(sampler, constraint=constrain.compile(TWO, regex="(ab)*"), max_tokens=1)
    assert {one.tokens for one in nothing if one.log_weight > -math.inf} == {()}
    assert math.exp(nothing.log_z) == pytest.approx(0.1, rel=0.9)


def test_no_language_at_all_is_refused_before_any_sampler() -> None:
    with pytest.raises(UnsatisfiableError):
        constrain.compile(TWO, schema={"type": "string", "minLength": 3, "maxLength": 2})


# ---- generate --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["all NaN", "all -inf", "+inf", "all 0", "a column too few", "one row", "None"])
@pytest.mark.parametrize("sampler", OF_ONE_KIND)
def test_generate_says_the_same(sampler: str, bad: str) -> None:
    spoil, says = ROWS[bad]
    with pytest.raises(ValueError, match=says):
        constrain.generate(Table(spoil), regex="(b*a){2}b+", tokenizer=TWO, max_tokens=8, seed=1, sampler=sampler)


def test_a_product_beyond_its_limits_raises() -> None:
    with pytest.raises(LimitError, match="more than 2 states"):
        run("markov", most_states=2)
    with pytest.raises(LimitError, match="not even an end token"):
        markov_exact.Product.of(Table(), LANGUAGE, max_tokens=0)
