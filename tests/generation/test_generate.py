"""`constrain.generate` as a user has it: models, constraints, values, budgets, seeds, streams and errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest
from typing_extensions import TypedDict

import constrain
from constrain.base.errors import ConstrainError, GrammarError, LimitError, UnsatisfiableError
from constrain.integrations.python_values import parse_json
from constrain.sampling.core.masked_sampling import Proposal, allowed_tokens, pick_token
from tests.model_factory import TableModel

BYTES = constrain.Vocabulary.bytes()
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 3},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
COMPACT = constrain.Style(whitespace="compact")
ROOT = Path(__file__).resolve().parents[2]


def ask(seed: int = 0, **more):
    """`generate` with a random model over bytes."""
    return constrain.generate(TableModel(BYTES.size, seed), tokenizer=BYTES, seed=seed, **more)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Person:
    name: str
    colour: Colour


class Place(TypedDict):
    name: Literal["here", "there"]
    open: bool


class Pair(NamedTuple):
    left: bool
    right: Colour


def test_the_names_are_what_they_say() -> None:
    """`constrain.generate` is the function, also after its module or another name of it was imported."""
    code = "import constrain.generation.pipeline; from constrain import Generation, generate; assert callable({})"
    for name in ("generate", "constrain.generate"):
        command = [sys.executable, "-c", code.format(name)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_load_model_is_public_and_loads_no_framework_until_it_is_called() -> None:
    code = "import sys, constrain; assert callable(constrain.load_model); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert "load_model" in constrain.__all__


def test_a_schema_gives_its_value() -> None:
    for seed in range(6):
        g = ask(seed, schema=SCHEMA, style=COMPACT, max_tokens=200)
        assert g.value == json.loads(g.text)
        assert set(g.value) <= {"name", "age", "tags"}
        assert {"name", "age"} <= set(g.value)
        assert 0 <= g.value["age"] <= 120
        assert g.finish_reason == "complete"
        assert BYTES.decode(g.tokens) == g.text
        assert g.logprob <= g.log_weight <= 0, "the weight is what the mask left, the rest was drawn"
        assert g.stats.tokens == len(g.tokens) + 1
        assert g.stats.compile_us > 0
        assert g.stats.mask_us > 0


@pytest.mark.parametrize("schema", [json.dumps({"type": "boolean"}), {"type": "boolean"}, {"enum": [True, False]}])
def test_a_schema_is_a_dict_or_text(schema) -> None:
    assert ask(schema=schema).value in (True, False)


def test_a_schema_is_a_bool() -> None:
    g = ask(schema=True, style=COMPACT, max_tokens=60)
    assert g.value == json.loads(g.text)
    with pytest.raises(UnsatisfiableError):
        ask(schema=False)


def test_types_give_their_own_values() -> None:
    person = ask(schema=Person, style=COMPACT, max_tokens=150).value
    assert isinstance(person, Person)
    assert isinstance(person.colour, Colour)
    place = ask(type=Place, max_tokens=100).value
    assert place["name"] in ("here", "there")
    assert isinstance(ask(type=Colour).value, Colour)
    assert ask(type=Literal["x", 3]).value in ("x", 3)
    assert all(isinstance(item, bool) for item in ask(type=list[bool], style=COMPACT, max_tokens=40).value)


def test_pydantic_models_come_back_as_such() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):
        name: Literal["pen", "cup"]
        count: int = pydantic.Field(ge=1, le=9)

    g = ask(schema=Item, style=COMPACT, max_tokens=100)
    assert isinstance(g.value, Item)
    assert 1 <= g.value.count <= 9
    many = ask(type=list[Item], style=COMPACT, max_tokens=120)
    assert all(isinstance(item, Item) for item in many.value)


def test_regex_and_choices_give_text() -> None:
    for seed in range(4):
        date = ask(seed, regex=r"\d{4}-\d{2}-\d{2}")
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date.text)
        assert date.value == date.text
        assert ask(seed, choices=["yes", "no", "maybe später"]).value in ("yes", "no", "maybe später")


def test_one_or_a_list() -> None:
    one = ask(3, regex="[a-z]{3,9}")
    some = ask(3, regex="[a-z]{3,9}", n=3)
    assert isinstance(some, list)
    assert some[0] == one
    assert len({g.text for g in some}) == 3
    assert ask(3, regex="[a-z]{3,9}", n=1) == [one]
    assert ask(3, regex="[a-z]{3,9}", n=0) == []
    assert ask(3, regex="[a-z]{3,9}", n=3) == some, "the same seed gives the same texts"


def test_generate_draws_the_tokens_of_a_plain_decoding_loop() -> None:
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=COMPACT)
    for seed in range(4):
        for proposal in (Proposal(), Proposal(0.7, 5, 0.9), Proposal(0)):
            lm, rng, matcher = TableModel(BYTES.size, seed), np.random.default_rng(seed), constraint.matcher()
            while not matcher.is_finished:
                row = lm.next_logprobs([matcher.tokens])[0]
                choice = pick_token(row, allowed_tokens(matcher.mask()), rng, proposal, BYTES.eos_ids)
                if choice.token in BYTES.eos_ids:
                    break
                matcher.advance(choice.token)
            g = ask(
                seed, schema=SCHEMA, style=COMPACT, max_tokens=300,
                temperature=proposal.temperature, top_k=proposal.top_k, top_p=proposal.top_p,
            )  # fmt: skip
            assert list(g.tokens) == matcher.tokens


def test_every_budget_ends_in_a_valid_text_or_is_refused() -> None:
    least = len('{"name":"","age":0}') + 1
    for most in range(1, 60):
        if most < least:
            with pytest.raises(LimitError, match=f"takes {least} tokens"):
                ask(most, schema=SCHEMA, style=COMPACT, max_tokens=most)
            continue
        g = ask(most, schema=SCHEMA, style=COMPACT, max_tokens=most)
        assert len(g.tokens) < most
        assert set(g.value) >= {"name", "age"}
        assert g.finish_reason in ("complete", "budget")
    tight = ask(0, schema=SCHEMA, style=COMPACT, max_tokens=least)
    assert tight.finish_reason == "budget"
    assert tight.value == {"name": "", "age": tight.value["age"]}


def test_unbounded_values_are_closed_within_max_tokens() -> None:
    """Strings, arrays and white space without a bound, and a model that has no wish to end."""
    for schema in ({"type": "string"}, {"type": "array"}, {"type": "object"}, True):
        for seed in range(3):
            g = ask(seed, schema=schema, max_tokens=40)
            assert g.value == parse_json(g.text)
            assert len(g.tokens) < 40


def test_pieces_are_the_text() -> None:
    pieces: list = []
    g = ask(schema=SCHEMA, style=COMPACT, max_tokens=200, stream=pieces.append)
    assert "".join(piece.text for piece in pieces) == g.text
    assert tuple(piece.token for piece in pieces) == g.tokens
    assert any(piece.origin == "forced" for piece in pieces)
    assert g.stats.forced_tokens == sum(piece.origin == "forced" for piece in pieces)
    assert g.stats.model_calls + g.stats.forced_tokens <= g.stats.tokens


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({}, "exactly one of"),
        ({"regex": "a", "choices": ["b"]}, "exactly one of"),
        ({"choices": "yes"}, "choices is a single text"),
        ({"regex": "a", "sampler": "magic"}, "no sampler 'magic'"),
        ({"regex": "a", "n": -1}, "n is -1"),
        ({"regex": "a", "max_tokens": 0}, "max_tokens is 0"),
        ({"regex": "a", "temperature": -1.0}, "temperature must be"),
        ({"regex": "a", "top_k": 0}, "top_k must be"),
        ({"regex": "a", "top_p": 2.0}, "top_p must be"),
        ({"regex": "a", "prompt": "x"}, "holds its own prompt"),
        ({"regex": "a{3}", "max_tokens": 3}, "takes 4 tokens"),
    ],
)
def test_errors_name_the_cause(wrong: dict, match: str) -> None:
    with pytest.raises(ConstrainError, match=re.escape(match)):
        ask(**wrong)


def test_invalid_models_are_refused() -> None:
    with pytest.raises(ConstrainError, match="model is of type int"):
        constrain.generate(3, regex="a")
    with pytest.raises(ConstrainError, match="needs its Vocabulary"):
        constrain.generate(TableModel(257), regex="a")
    with pytest.raises(GrammarError, match="line 1, column 8"):
        ask(grammar="start: 'a'")


@pytest.fixture(scope="module", params=["llama", "gpt2", "mistral", "t5"])
def loaded(request: pytest.FixtureRequest):
    pytest.importorskip("transformers")
    from tests.model_factory import build_model

    return build_model(request.param)


class TestRealModels:
    """The same with transformers: `generate`, the processor in `model.generate`, and a loop by hand agree."""

    def test_loop_processor_and_hand_agree(self, loaded) -> None:
        from tests.integrations.test_transformers import greedy_by_hand, inputs_for, model_generate, written

        texts = [{"regex": r"(\d{1,3}\.){3}\d{1,3}"}, {"choices": ["name", "names"]}]
        for ask in ({"schema": SCHEMA, "style": COMPACT}, *texts):
            constraint = constrain.compile(loaded.vocabulary, **ask)
            tokens = greedy_by_hand(loaded, "name", constraint)
            more = {"tokenizer": loaded.tokenizer, "temperature": 0, "max_tokens": 200}
            g = constrain.generate(loaded.model, "name", **more, **ask)
            assert list(g.tokens) == tokens
            assert g.finish_reason == "complete"
            inputs = inputs_for(loaded, "name")
            processor = constrain.ConstraintLogitsProcessor(constraint)
            out = model_generate(loaded, inputs, processor, max_new_tokens=200)
            assert written(loaded, inputs, out) == [tokens]

    def test_a_batch_of_eight_schemas(self, loaded) -> None:
        from tests.integrations.test_transformers import PROMPTS, inputs_for, model_generate, written

        schemas = [{"type": "string", "minLength": k, "maxLength": k + 2} for k in range(8)]
        constraints = [constrain.compile(loaded.vocabulary, schema=schema) for schema in schemas]
        inputs = inputs_for(loaded, *PROMPTS)
        out = model_generate(loaded, inputs, constrain.ConstraintLogitsProcessor(constraints), max_new_tokens=150)
        for prompt, schema, tokens in zip(PROMPTS, schemas, written(loaded, inputs, out)):
            g = constrain.generate(loaded, prompt, schema=schema, temperature=0, max_tokens=151)
            assert list(g.tokens) == tokens
            assert schema["minLength"] <= len(g.value) <= schema["maxLength"]

    def test_logprob_is_the_model_s_own(self, loaded) -> None:
        import torch

        g = constrain.generate(loaded, "name", schema=SCHEMA, style=COMPACT, seed=1, max_tokens=200)
        model, ids, end = loaded.model, loaded.prompt_ids("name"), loaded.vocabulary.eos_ids[0]
        text = [*g.tokens, end]
        with torch.inference_mode():
            if model.config.is_encoder_decoder:
                head = [model.config.decoder_start_token_id]
                out = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([head + text[:-1]]))
            else:
                head = ids
                out = model(input_ids=torch.tensor([ids + text[:-1]]))
        rows = torch.log_softmax(out.logits[0, len(head) - 1 :].double(), -1)
        assert g.logprob == pytest.approx(float(rows[range(len(text)), text].sum()), abs=1e-2)

    def test_beams_stay_inside(self, loaded) -> None:
        from tests.integrations.test_transformers import inputs_for, model_generate, written

        constraint = constrain.compile(loaded.vocabulary, regex="[a-c]{1,4}")
        inputs = inputs_for(loaded, "name", "city")
        out = model_generate(loaded, inputs, constrain.ConstraintLogitsProcessor(constraint), num_beams=4)
        for tokens in written(loaded, inputs, out):
            assert re.fullmatch("[a-c]{1,4}", loaded.vocabulary.decode(tokens))


def test_a_model_with_few_positions_ends_within_them() -> None:
    pytest.importorskip("transformers")
    from tests.model_factory import build_model

    loaded = build_model("gpt2")
    prompt = [5] * (loaded.model.config.max_position_embeddings - 30)
    for seed in range(3):
        g = constrain.generate(loaded, prompt, schema={"type": "string", "minLength": 20}, seed=seed)
        assert len(g.tokens) <= 30
        assert len(g.value) >= 20
    assert loaded.on(prompt[:10]).max_new_tokens > 400
    with pytest.raises(LimitError, match="the prompt has 542 tokens; gpt2 has 512 positions"):
        constrain.generate(loaded, prompt + [5] * 60, regex="a")
    assert build_model("llama").on(prompt).max_new_tokens == 2048 - len(prompt) + 1
    assert build_model("t5").on(prompt).max_new_tokens is None


def test_the_embedded_model() -> None:
    pytest.importorskip("transformers")
    if not (ROOT / "constrain" / "demo" / "model.safetensors").exists():
        pytest.skip("the embedded model is not in this checkout")
    g = constrain.generate("demo", "Describe a person.", schema=Person, seed=1)
    assert isinstance(g.value, Person)
    assert constrain.generate("demo", regex=r"\d{4}-\d{2}-\d{2}", seed=1).finish_reason == "complete"
    assert constrain.generate("demo", choices=["yes", "no"], seed=1).value in ("yes", "no")
