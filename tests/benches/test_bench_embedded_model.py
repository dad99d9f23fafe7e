"""The bench of the embedded model: questions have the answer in their prompt, and the judge tells right from wrong."""

from __future__ import annotations

import ast
import json
import random
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.checkpoints import BASELINE, CHECKPOINTS, find_checkpoint
from bench.embedded_model.judging import Tally, judge_answer, list_values
from bench.embedded_model.questions import TASKS, Question, draw_questions
from bench.embedded_model.words import HELD_OUT_NUMBERS, list_held_out_words, spell_number

TRAINING = Path(__file__).resolve().parents[2] / "training"
QUESTIONS = draw_questions(40, seed=7)


def write_right(question: Question) -> str:
    """Return the right answer as text."""
    return str(question.right) if question.choices else json.dumps(question.right)


def test_the_same_seed_gives_the_same_questions() -> None:
    assert draw_questions(5, seed=3) == draw_questions(5, seed=3) != draw_questions(5, seed=4)
    assert [question.task for question in draw_questions(2, seed=3)] == [task for task in TASKS for _ in range(2)]


@pytest.mark.parametrize("task", TASKS)
def test_right_answers_satisfy_their_constraint(task: str) -> None:
    for question in (one for one in QUESTIONS if one.task == task):
        assert (question.schema is None) != (question.choices is None)
        if question.choices is not None:
            assert question.right in question.choices
        else:
            jsonschema.validate(question.right, question.schema)
        verdict = judge_answer(question, write_right(question), write_right(question))
        assert verdict.is_right and verdict.free_valid and verdict.free_right
        assert verdict.values == verdict.right_values == len(list_values(question.right))


@pytest.mark.parametrize("task", ["sentence", "paragraph", "lines", "colour"])
def test_prompts_say_the_values(task: str) -> None:
    for question in (one for one in QUESTIONS if one.task == task):
        assert all(str(value) in question.text for value in list_values(question.right).values())


def test_numbers_are_said_in_words() -> None:
    for question in (one for one in QUESTIONS if one.task == "number"):
        (number,) = list_values(question.right).values()
        assert re.search(rf"\b{spell_number(number)}\b", question.text)
        assert number < 20 or number in HELD_OUT_NUMBERS


def test_every_wrong_value_is_counted() -> None:
    rng = random.Random(1)
    for question in QUESTIONS:
        values: dict[tuple[str, ...], Any] = list_values(question.right)
        place = rng.choice(list(values))
        changed: Any = "no such answer" if question.choices or not place else json.loads(json.dumps(question.right))
        if place:
            inner = changed
            for name in place[:-1]:
                inner = inner[name]
            inner[place[-1]] = "no such answer"
        text = changed if question.choices else json.dumps(changed)
        verdict = judge_answer(question, text, text)
        assert (verdict.right_values, verdict.is_right, verdict.free_right) == (verdict.values - 1, False, False)


@pytest.mark.parametrize(
    ("masked", "free"), [("1", '{"a": 1'), ('{"a": true}', '{"a": true}'), ('{"a": 1, "b": 2}', "")]
)
def test_other_values_and_broken_texts_are_wrong(masked: str, free: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    verdict = judge_answer(Question("sentence", "", schema, None, {"a": 1}), masked, free)
    assert not verdict.is_right and not verdict.free_valid and not verdict.free_right


def test_tally_gives_shares() -> None:
    tally = Tally()
    schema = {"type": "object"}
    question = Question("sentence", "", schema, None, {"a": 1, "b": {"c": 2}}, 0.5)
    tally.add(question, judge_answer(question, '{"a": 1, "b": {"c": 3}}', "{}"))
    tally.add(question, judge_answer(question, json.dumps(question.right), "{"))
    assert tally.as_row() == {
        "values right": 75, "answers right": 50, "by chance": 50, "valid without mask": 50, "right without mask": 0,
    }  # fmt: skip


def test_numbers_are_spelled() -> None:
    assert [
        spell_number(number) for number in (0, 11, 20, 47, 99)
    ] == "zero eleven twenty forty-seven ninety-nine".split()


def list_texts(file: Path) -> list[str]:
    """Return the strings of a module that are not docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in alone
    ]


def test_held_out_words_do_not_occur_in_the_training_data() -> None:
    if not TRAINING.is_dir():
        pytest.skip("training/ is not in this checkout")
    held_out = re.compile(rf"\b({'|'.join(list_held_out_words())})\b", re.IGNORECASE)
    found = {file.name: held_out.findall("\n".join(list_texts(file))) for file in TRAINING.glob("*.py")}
    assert "exercises.py" in found
    assert not any(found.values()), found


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_have_one_tokenizer_and_architecture(name: str) -> None:
    folder, shipped = find_checkpoint(name), find_checkpoint("demo")
    for file in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        assert (folder / file).read_bytes() == (shipped / file).read_bytes()
    assert (folder / "model.safetensors").stat().st_size == (shipped / "model.safetensors").stat().st_size


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(f"is not one of demo, {BASELINE}")):
        find_checkpoint(str(tmp_path))
    assert find_checkpoint(BASELINE).name == BASELINE


@pytest.mark.slow
def test_a_run_compares_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch"), pytest.importorskip("transformers")
    from bench.embedded_model.__main__ import main

    names = ["--checkpoints", f"{BASELINE},demo"]
    assert main([*names, "--questions", "1", "--tokens", "40", "--results", str(tmp_path)]) == 0
    assert BASELINE in capsys.readouterr().out
    (file,) = tmp_path.glob("*/embedded_model.json")
    checkpoints = json.loads(file.read_text("utf-8"))["facts"]["checkpoints"]
    assert list(checkpoints) == [BASELINE, "demo"]
    assert all(set(rows) == {*TASKS, "all"} for rows in checkpoints.values())
    assert main(["--checkpoints", str(tmp_path)]) == 2
