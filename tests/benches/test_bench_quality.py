"""`bench quality`: its measures from made-up answers, its tasks, a run with the demo model, and the harness."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.quality.answers import Answer
from bench.quality.schemas import conforms, summarize_answers
from bench.quality.tasks import make_last_letters, make_shuffled_objects, measure_tasks


def test_measures_are_those_of_the_paper() -> None:
    answers = [Answer("{}", 3, 0.001, 0.010, 0.030), Answer("{}", 1, 0.003, 0.020, 0.020), None, None]
    row = summarize_answers(answers, valid=1)
    assert (row["declared coverage"], row["empirical coverage"], row["compliance"]) == (0.5, 0.25, 0.5)
    assert row["compile ms"] == pytest.approx(2) and row["first token ms"] == pytest.approx(15)
    assert row["each token ms"] == pytest.approx(10)


def test_an_engine_that_refuses_everything_has_no_times() -> None:
    row = summarize_answers([None], valid=0)
    assert row["declared coverage"] == 0 and row["compliance"] is None and row["first token ms"] is None


def test_answers_are_judged_by_the_schema() -> None:
    schema = json.dumps({"type": "object", "required": ["a"]})
    assert conforms('{"a": 1}', schema)
    assert not conforms("{}", schema) and not conforms('{"a"', schema)


def test_questions_have_the_right_answers() -> None:
    question = make_last_letters(random.Random(1))
    words = question.text.split('"')[1].split()
    assert question.right == "".join(word[-1] for word in words) and conforms(
        json.dumps({"reason": "", "answer": question.right}), question.schema
    )
    question = make_shuffled_objects(random.Random(2))
    held: dict[str, str] = {}
    for sentence in question.text.replace(";", ".").split("."):
        words = sentence.split()
        if "has" in words:
            held[words[0]] = words[3]
        elif words and words[-1] == "swap":
            held[words[0]], held[words[2]] = held[words[2]], held[words[0]]
    assert question.right == held[question.text.split("does ")[1].split()[0]]


@pytest.fixture(scope="module")
def demo() -> Any:
    pytest.importorskip("transformers")
    import constrain

    return constrain.load_model("demo")


def test_a_run_with_the_demo_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    from bench.quality.__main__ import main

    rows = [
        {"id": "one", "schema": {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"],
                                 "additionalProperties": False}, "tests": []},
        {"id": "two", "schema": {"type": "nonsense"}, "tests": []},
    ]  # fmt: skip
    data = tmp_path / "cases.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    assert main(["--data", str(data), "--results", str(tmp_path), "--tokens", "16", "--parts", "schemas"]) == 0
    assert "compliance" in capsys.readouterr().out
    [path] = tmp_path.rglob("quality-schemas.json")
    ours, free = json.loads(path.read_text())["facts"]["rows"]
    assert (ours["declared coverage"], ours["compliance"]) == (0.5, 1.0)
    assert ours["first token ms"] > 0 and free["declared coverage"] == 1.0


def test_tasks_are_measured(demo: Any) -> None:
    row = measure_tasks(demo, "constrain", count=1, sampler="masked", most=24, seed=0)
    assert {row["last letters"], row["shuffled objects"]} <= {0.0, 1.0} and row["questions"] == 1


@pytest.mark.parametrize("sampler", ["masked", "smc"])
def test_our_samplers_answer(demo: Any, sampler: str) -> None:
    from bench.quality.answers import answer_prompt

    schema = json.dumps({"enum": ["red", "green"]})
    answer = answer_prompt(demo, "constrain", "A colour?", schema, sampler=sampler, most=12, seed=1)
    assert conforms(answer.text, schema) and (answer.first is None) == (sampler == "smc")


def test_peer_compile_time_is_that_of_the_first_compilation(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.decoding import peers
    from bench.quality.answers import answer_prompt

    clock = [0.0]

    class Caching:
        """Takes seconds to compile a schema for the first time, and nothing afterwards."""

        def __init__(self, vocabulary: Any) -> None:
            self.known: set[str] = set()

        def compile(self, schema: str) -> None:
            clock[0] += 0.0 if schema in self.known else 5.0
            self.known.add(schema)

        def processor(self) -> Any:
            return lambda input_ids, scores: scores

    monkeypatch.setitem(peers.PEERS, "llguidance", Caching)
    monkeypatch.setattr(peers, "perf_counter", lambda: clock[0])
    answer = answer_prompt(demo, "llguidance", "A number?", "true", sampler="masked", most=2, seed=1)
    assert answer.compiling == 5.0 and answer.first is not None and answer.first > 5.0


# ---- lm-evaluation-harness

TASK = """task: colours
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: {kind}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
{more}
"""


@pytest.mark.parametrize("kind", ["generate_until", "multiple_choice"])
def test_the_harness_runs_a_task(demo: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lm_eval", reason="pip install lm-eval")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    from bench.quality.harness import evaluate_tasks

    lines = [{"question": f"Colour {k}?", "answer": "red", "choices": ["red", "green"]} for k in range(3)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, lines)))
    more = {
        "generate_until": 'generation_kwargs:\n  until: ["\\n"]\n  max_gen_toks: 8\n',
        "multiple_choice": 'doc_to_choice: "{{choices}}"\n',
    }[kind] + f"metric_list:\n  - metric: {'acc' if kind == 'multiple_choice' else 'exact_match'}"
    (tmp_path / "colours.yaml").write_text(TASK.format(file=tmp_path / "data.jsonl", kind=kind, more=more))
    (tmp_path / "schema.json").write_text('{"const": "red"}')
    rows = evaluate_tasks(
        demo, ["colours"], schema=str(tmp_path / "schema.json"), sampler="masked", most=8, seed=0,
        include=str(tmp_path), limit=None,
    )  # fmt: skip
    [row] = [row for row in rows if row["task"] == "colours"]
    assert 0 <= row["value"] <= 1 and row["sampler"] == "masked"


def test_the_harness_model_scores_and_generates(demo: Any) -> None:
    pytest.importorskip("lm_eval", reason="pip install lm-eval")
    from bench.quality.harness import ConstrainedModel

    model = ConstrainedModel(demo, {"regex": "(red|green), and so on"}, sampler="masked", most=20)
    [text] = model.generate_until([SimpleNamespace(args=("A colour:", {"until": [","]}))])
    assert text in ("red", "green")
    (short, _), (long, _) = model.loglikelihood(
        [SimpleNamespace(args=("A colour:", " red")), SimpleNamespace(args=("A colour:", " red and blue"))]
    )
    assert long < short < 0
    assert model.loglikelihood_rolling([SimpleNamespace(args=("red",))])[0] < 0
    faithful = ConstrainedModel(demo, {"choices": ["a", "b"]}, sampler="smc")
    assert faithful.generate_until([SimpleNamespace(args=("x", {}))])[0] in ("a", "b")
    with pytest.raises(ValueError, match="constraint"):
        ConstrainedModel(demo, sampler="smc")
