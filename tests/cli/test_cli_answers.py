"""`constrain choose`, `score` and `repair`, and the options --search, --draft, --check and --retries of `generate`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("transformers")

import constrain
from tests.command_line_factory import Run

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], \
"additionalProperties": false}'
pytestmark = pytest.mark.skipif(
    not (ROOT / "constrain" / "demo" / "model.safetensors").exists(),
    reason="the embedded model is not in this checkout",
)


def test_choose_prints_the_probabilities_that_the_function_returns(run: Run) -> None:
    options = [" yes", " no", "maybe"]
    found = run("choose", *options, "--prompt", "Is it?", "--json").document
    expected = constrain.choose("demo", "Is it?", options)
    assert found["best"] == expected.best
    assert found["probabilities"] == pytest.approx(dict(expected.probabilities))
    lines = run("choose", *options, "--prompt", "-", stdin=b"Is it?").out.splitlines()
    ordered = sorted(options, key=expected.probabilities.__getitem__, reverse=True)
    assert [line.split("\t")[0] for line in lines] == ["option", *map(repr, ordered)]


def test_choose_refuses_equal_options(run: Run) -> None:
    answer = run("choose", "a", "a")
    assert answer.code == 2 and "twice" in answer.err


def test_score_prints_the_log_probability_that_the_function_returns(run: Run) -> None:
    text = '{"age": 3}'
    found = run("score", text, "--prompt", "How old?", "--schema", SCHEMA, "--json").document
    constraint = constrain.compile(constrain.load_model("demo").vocabulary, schema=json.loads(SCHEMA))
    expected = constrain.score("demo", "How old?", text, constraint)
    assert found["logprob"] == pytest.approx(expected.logprob)
    assert found["masked_logprob"] == pytest.approx(expected.masked_logprob)
    assert math.fsum(one["logprob"] for one in found["tokens"]) == pytest.approx(found["logprob"])
    answer = run("score", text, "--schema", SCHEMA, "--spellings", "all")
    assert answer.code == 0 and "under masked sampling" in answer.out and "all tokenisations" in answer.err
    assert "±" in run("score", text, "--spellings", "sampled", "--seed", "1").out


def test_score_of_a_text_that_the_constraint_refuses(run: Run) -> None:
    assert run("score", '{"age": "x"}', "--schema", SCHEMA).code == 1


def test_repair_prints_the_nearest_text_and_the_edits(run: Run) -> None:
    answer = run("repair", "-", "--schema", SCHEMA, stdin=b'{"age": 3\n')
    assert (answer.code, answer.out) == (0, '{"age": 3}\n')
    assert "insert '}' at 9" in answer.err and "none is nearer" in answer.err
    found = run("repair", "-", "--schema", SCHEMA, "--json", stdin=b'{"age": 3').document
    assert found["value"] == {"age": 3} and found["distance"] == 1
    assert found["edits"] == [{"position": 9, "removed": "", "inserted": "}"}]
    assert "is valid" in run("repair", "-", "--schema", SCHEMA, stdin=b'{ "age":3 }').err
    assert run("repair", "-", "--schema", SCHEMA, stdin=b"\xff").code == 2


def test_repair_with_a_model(run: Run) -> None:
    answer = run("repair", "-", "--choice", "yes", "--choice", "no", "--model", "demo", stdin=b"yse")
    assert answer.code == 0 and answer.out.strip() in ("yes", "no")


def test_generate_searches_for_the_likeliest_text(run: Run) -> None:
    options = ["yes", "no", "maybe"]
    found = run("generate", *(f"--choice={one}" for one in options), "--search", "beam:8", "--json").document["texts"]
    beams = constrain.generate("demo", None, choices=options, search=constrain.BeamSearch(8))
    assert [one["text"] for one in found] == [beams.text]
    assert run("generate", "--choice", "a", "--choice", "b", "--search", "best-first", "-n", "2").code == 0
    assert run("generate", "--choice", "a", "--search", "beam", "--temperature", "0").code == 3


@pytest.mark.parametrize("draft", ["constraint", "prompt", "suffix", "recycling", "none"])
def test_a_draft_does_not_change_the_likeliest_text(run: Run, draft: str) -> None:
    arguments = ("generate", "--schema", SCHEMA, "--temperature", "0", "--json")
    drafted = run(*arguments, "--draft", draft).document["texts"][0]
    assert drafted["text"] == run(*arguments).document["texts"][0]["text"]


def test_a_checked_text_is_accepted_by_the_checker(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "shop.sql"
    script.write_text("CREATE TABLE item (price INTEGER);", "utf-8")
    pattern = "SELECT (price|size) FROM (item|shop)"
    answer = run("generate", "--regex", pattern, "--check", f"sqlite={script}", "--seed", "1", "-n", "3")
    assert answer.code == 0 and set(answer.out.split("\n")) == {"SELECT price FROM item", ""}
    answer = run("generate", "--regex", "(x = |y = )[1)]", "--check", "python", "--retries", "20", "--seed", "2")
    assert answer.code == 0 and answer.out.strip() in ("x = 1", "y = 1")
    refused = run("generate", "--choice", "x = )", "--check", "python", "--retries", "1")
    assert refused.code in (1, 2, 3) and "Traceback" not in refused.err
