"""sampler="auto": the table of `apply_rule` row by row, then `choose_sampler` for a model that each row is about."""

from __future__ import annotations

import numpy as np
import pytest

from constrain import compile, generate
from constrain.base.errors import UnsupportedError
from constrain.sampling import Hmm, ValidatorChecker, draw
from constrain.sampling.core.weight_statistics import weight_stats
from constrain.sampling.post_filtering import PostFilter
from constrain.sampling.sampler_choice import (
    PILOT,
    SMALL,
    ChoiceInputs,
    SamplerChoice,
    apply_rule,
    choose_sampler,
    count_token_prefixes,
)
from tests.markov_factory import LETTERS, PIECES, TWO, ChainModel, cases

GOOD = weight_stats(np.full(PILOT, -9.0))
DEAD = weight_stats(np.full(PILOT, -np.inf))
UNEVEN = weight_stats(np.random.default_rng(1).normal(-12, 3, PILOT))
OPEN = {"states": 0, "texts": 0, "drawn": PILOT}


@pytest.mark.parametrize(
    ("inputs", "sampler", "because"),
    [
        (ChoiceInputs(wants="a temperature", repeats="never"), "masked", "a temperature"),
        (ChoiceInputs(repeats="never", masks=False), "without_replacement", "repeat"),
        (ChoiceInputs(masks=False), "awrs", "no masks"),
        (ChoiceInputs(states=12), "markov", "12 states"),
        (ChoiceInputs(states=0, texts=7), "exact", "only 7 texts"),
        (ChoiceInputs(**OPEN, pilot=DEAD, ended=True), "smc", "none of 32"),
        (ChoiceInputs(**OPEN, pilot=DEAD, ended=False), "exact", "none of 32"),
        (ChoiceInputs(**OPEN, pilot=GOOD), "masked", "only 0 nats"),
        (ChoiceInputs(**OPEN, pilot={**GOOD, "steady": 0.0}), "smc", "16 particles"),
        (ChoiceInputs(**OPEN, pilot={**GOOD, "kl_to_target": 2 * SMALL}), "smc", "16 particles"),
        (ChoiceInputs(**OPEN, pilot=UNEVEN), "smc", "particles"),
        (ChoiceInputs(**OPEN, pilot={**UNEVEN, "log_z": -3.0}), "exact", "once in 20.1 texts"),
        (ChoiceInputs(**OPEN, pilot={**GOOD, "log_z": -3.0}), "masked", "only 0 nats"),
        (ChoiceInputs(**OPEN, pilot={**GOOD, "dead_ends": 0.1}), "smc", "16 particles"),
        (ChoiceInputs(**OPEN, pilot=GOOD, checked=True), "smc", "16 particles"),
    ],
)
def test_every_row_of_the_table(inputs: ChoiceInputs, sampler: str, because: str) -> None:
    found = apply_rule(inputs)
    assert isinstance(found, SamplerChoice)
    assert found.sampler == sampler
    assert because in found.reason


@pytest.mark.parametrize(
    ("inputs", "needed"),
    [
        (ChoiceInputs(), "states"),
        (ChoiceInputs(states=0), "texts"),
        (ChoiceInputs(states=0, texts=0), "pilot"),
        (ChoiceInputs(**OPEN, pilot=DEAD), "ended"),
    ],
)
def test_the_input_that_is_needed_next(inputs: ChoiceInputs, needed: str) -> None:
    assert apply_rule(inputs) == needed


def test_the_less_a_pilot_is_worth_the_more_particles() -> None:
    few, many, most = (
        apply_rule(ChoiceInputs(**OPEN, pilot={**UNEVEN, "ess": ess})).options["particles"]  # type: ignore[union-attr]
        for ess in (16.0, 4.0, 1.0)
    )
    assert (few, many, most) == (16, 64, 256)


# ---- the inputs ---------------------------------------------------------------------------------------------------

LONG = compile(LETTERS, regex="[abc]{1,12}")  # all texts but the empty one and long ones: masking is nearly right
TRAP = cases()["counting"]
CHAIN = ChainModel.random(LETTERS, 1, 3)


def chosen(lm: object, constraint: object, max_tokens: int = 12, **given: object) -> SamplerChoice:
    return choose_sampler(lm, constraint, rng=np.random.default_rng(0), max_tokens=max_tokens, **given)  # type: ignore[arg-type]


def test_markov_and_hidden_models_are_computed() -> None:
    assert chosen(TRAP.lm.as_ngram(), TRAP.constraint, TRAP.max_tokens).sampler == "markov"
    hidden = Hmm.random(3, TWO.size, rng=np.random.default_rng(0))
    assert chosen(hidden, TRAP.constraint, TRAP.max_tokens).sampler == "markov"


def test_a_small_number_of_texts_needs_no_pilot() -> None:
    found = chosen(TRAP.lm, compile(TWO, choices=["ab", "ba", "b"]))
    assert (found.sampler, found.calls) == ("exact", 0)


def test_masking_where_it_is_right_and_particles_where_it_is_not() -> None:
    even = ChainModel(np.log(np.full((5, 4), 0.25)), 1)
    found = chosen(even, LONG, 30)
    assert found.sampler in ("masked", "exact")
    free = compile(LETTERS, regex="[abc]*")
    assert chosen(even, free, 200).sampler == "masked"
    assert chosen(TRAP.lm, TRAP.constraint, TRAP.max_tokens).sampler == "smc"
    assert chosen(even, compile(LETTERS, regex="[ab]{9}[abc]*"), 10).calls > 0


def test_a_pilot_that_never_ends_leads_to_populations_that_do() -> None:
    rows = np.array([[0.5, 0.4, 1e-12, 0.1]] * 5)
    lm = ChainModel(np.log(rows / rows.sum(axis=1, keepdims=True)), 1)
    rare = compile(LETTERS, regex="[ab]*c")
    assert chosen(lm, rare, 12).sampler == "smc"
    assert chosen(lm, PostFilter(rare, ValidatorChecker(LETTERS, lambda text: False)), 12).sampler == "exact"


def test_few_texts_that_the_model_hardly_ever_writes_are_not_attempted() -> None:
    forced = compile(LETTERS, regex="a{400}")
    lm = ChainModel(np.log(np.array([[0.1, 0.5, 0.3, 0.1]] * 5)), 1)
    found = chosen(lm, forced, 410)
    assert (found.sampler, found.calls) == ("masked", 401)
    assert sum(lm.row_counts) == 401  # draws with the same text share a row
    one = generate(lm, regex="a{400}", tokenizer=LETTERS, max_tokens=410, seed=0, sampler="auto")
    assert (one.text, one.stats.sampler) == ("a" * 400, "masked")
    assert sum(lm.row_counts) <= 3 * 401 + 1


def test_texts_that_tokens_spell_in_many_ways_are_not_few() -> None:
    """Of a text of 31 letters, each of a million sequences of tokens would be learnt by itself."""
    one, short = compile(PIECES, choices=["ab" * 15 + "a"]), compile(PIECES, choices=["abba"])
    lm = ChainModel.random(PIECES, 1, 0)
    assert chosen(lm, short).sampler == "exact"
    found = chosen(lm, one, 40)
    assert found.sampler == "smc"
    assert found.calls <= 40


def test_token_prefixes_are_counted_as_they_are_listed() -> None:
    texts = [b"abba", b"abab", b"b"]
    spelled = {token for token in PIECES.tokens if token}
    listed, new = {()}, {()}
    while new:
        longer = {(*tokens, token) for tokens in new for token in spelled}
        new = {one for one in longer if any(text.startswith(b"".join(one)) for text in texts)}
        listed |= new
    assert count_token_prefixes(texts, PIECES) == len(listed)
    assert count_token_prefixes([], PIECES) == 1


def test_a_checker_has_no_mask() -> None:
    judged = ValidatorChecker(TWO, lambda text: len(text) == 3)
    assert chosen(TRAP.lm, judged).sampler == "awrs"
    assert chosen(TRAP.lm, TRAP.constraint, repeats="never").sampler == "without_replacement"
    with pytest.raises(UnsupportedError, match="without replacement needs masks"):
        chosen(TRAP.lm, judged, repeats="never")


# ---- where it is asked for ---------------------------------------------------------------------------------------


def test_draws_say_what_was_chosen_and_why() -> None:
    drawn = draw(TRAP.lm, TRAP.constraint, sampler="auto", n=3, rng=np.random.default_rng(0), max_tokens=10)
    assert drawn.sampler == "smc"
    assert "particles" in drawn.reason
    assert drawn.stats["pilot_calls"] > 0
    never = draw(
        TRAP.lm, TRAP.constraint, sampler="auto", repeats="never", n=3, rng=np.random.default_rng(0), max_tokens=10
    )
    assert never.sampler == "without_replacement"
    with pytest.raises(TypeError, match="no options but repeats"):
        draw(TRAP.lm, TRAP.constraint, sampler="auto", particles=3, rng=np.random.default_rng(0), max_tokens=10)


def test_generations_report_the_chosen_sampler() -> None:
    given = {"regex": "(b*a){3}b+", "tokenizer": TWO, "max_tokens": 10, "seed": 1, "sampler": "auto"}
    one = generate(TRAP.lm, **given)
    assert one.stats.sampler == "smc"
    assert "particles" in one.stats.reason
    assert generate(TRAP.lm, **given) == one
    cold = generate(TRAP.lm, **given, temperature=0.5)
    assert cold.stats.sampler == "masked"
    assert "temperature" in cold.stats.reason


def test_the_command_line_says_why() -> None:
    pytest.importorskip("transformers")
    from typer.testing import CliRunner

    from constrain.cli.app import app

    done = CliRunner().invoke(app, ["generate", "--choice", "red", "--choice", "blue", "--sampler", "auto", "--stats"])
    assert done.exit_code == 0
    assert "sampler exact the constraint has only 2 texts" in " ".join(done.stderr.split())
