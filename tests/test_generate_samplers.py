"""`generate(sampler=)`: every sampler of the table gives texts with their meaning, and refuses what it cannot take."""

from __future__ import annotations

import math

import pytest

from constrain import generate
from constrain.errors import ConstrainError, UnsupportedError
from constrain.sampling import SAMPLERS
from tests.markov_made import TWO, ChainModel

LM = ChainModel.random(TWO, 1, 4)
REGEX = "(b*a){3}b"
GIVEN = {"regex": REGEX, "tokenizer": TWO, "max_tokens": 8, "seed": 3}


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "markov"])
def test_every_sampler_writes_texts_in_the_form(sampler: str) -> None:
    made = generate(LM, **GIVEN, sampler=sampler, n=4)
    assert len(made) == 4
    for one in made:
        if one.finish_reason == "length":
            assert one.value is None
            assert one.log_weight == -math.inf
        else:
            assert one.value == one.text
            assert one.text.count("a") == 3
            assert one.text.endswith("ab")
            assert one.log_weight > -math.inf
            assert one.stats.tokens == len(one.tokens) + 1
    again = generate(LM, **GIVEN, sampler=sampler, n=4)
    assert made == again
    if sampler in ("exact", "without_replacement", "pimh"):
        assert all(one.finish_reason == "complete" for one in made)
        assert made[0].stats.counts["model_calls"] > 0


def test_one_text_is_one_generation() -> None:
    one = generate(LM, **GIVEN, sampler="exact")
    assert one.text.endswith("ab")
    assert generate(LM, **GIVEN, sampler="exact", n=0) == []


def test_texts_without_replacement_are_as_many_as_there_are() -> None:
    made = generate(LM, **{**GIVEN, "max_tokens": 6}, sampler="without_replacement", n=100)
    assert sorted(one.text for one in made) == ["aaab", "aabab", "abaab", "baaab"]


def test_particles_are_passed_on() -> None:
    few, many = (generate(LM, **GIVEN, sampler="smc", n=2, particles=k)[0].stats.counts["lines"] for k in (2, 64))
    assert few <= 4 < many


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"sampler": "exact", "temperature": 0.5}, UnsupportedError, "no temperature"),
        ({"sampler": "smc", "top_k": 3}, UnsupportedError, "no temperature, top_k"),
        ({"sampler": "exact", "stream": print}, UnsupportedError, "nothing to stream"),
        ({"particles": 4}, ConstrainError, "particles is 4 and the sampler 'masked'"),
        ({"sampler": "smc", "particles": 0}, ConstrainError, "particles is 0"),
        ({"sampler": "markov"}, UnsupportedError, "last few tokens"),
    ],
)
def test_what_a_sampler_cannot_take_is_refused(given: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        generate(LM, **GIVEN, **given)


def test_the_command_line_takes_a_sampler() -> None:
    pytest.importorskip("transformers")
    from typer.testing import CliRunner

    from constrain.cli.app import app

    given = ["generate", "--choice", "red", "--choice", "blue", "-n", "5", "--seed", "1"]
    done = CliRunner().invoke(app, [*given, "--sampler", "without_replacement"])
    assert sorted(done.stdout.split()) == ["blue", "red"]
    done = CliRunner().invoke(app, [*given, "--sampler", "smc", "--particles", "2"])
    assert len(done.stdout.split()) == 5
    assert CliRunner().invoke(app, [*given, "--sampler", "magic"]).exit_code != 0
