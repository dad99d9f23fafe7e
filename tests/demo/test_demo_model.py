"""The embedded model: small, loaded like any other model, and it writes what its prompt asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constrain import demo

LIMIT = 8_000_000  # bytes of the repository that the model may take
SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def test_files_are_small_enough() -> None:
    names = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    folder = demo.model_folder()
    assert names <= {file.name for file in folder.iterdir()}
    assert sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) <= LIMIT


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ({"schema": {"type": "integer"}}, 'Schema: {"type":"integer"}\n'),
        ({"schema": ' {"type" : "integer"}'}, 'Schema: {"type":"integer"}\n'),
        ({"schema": True}, "Schema: true\n"),
        ({"regex": "[a-z]+"}, "Format: [a-z]+\n"),
        ({"choices": ["yes", "no"]}, "Choices: yes | no\n"),
        ({}, ""),
    ],
)
def test_prompt(arguments: dict[str, Any], form: str) -> None:
    assert demo.compose_prompt("Do it.", **arguments) == f"Do it.\n{form}Answer:\n"
    assert demo.compose_prompt(**arguments) == f"{form}Answer:\n"


def test_every_prompt_ends_at_a_token() -> None:
    """The answer starts at a token boundary, as it did in training."""
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(demo.model_folder() / "tokenizer.json"))
    for file in sorted(SCHEMAS.glob("*.json")):
        head = demo.compose_prompt("Write one.", json.loads(file.read_text()))
        alone = tokenizer.encode(head).ids
        assert len(alone) <= 512
        for answer in ('{"a": 1}', "[1, 2]", "true", "12", '"text"', "-1.5", "Ünder"):
            whole = tokenizer.encode(head + answer).ids
            assert whole[: len(alone)] == alone
            assert tokenizer.decode(whole) == head + answer


def test_any_text_can_be_spelled() -> None:
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(demo.model_folder() / "tokenizer.json"))
    for text in ("  a\t\r\n b", "naïve 東京 🙂\u200d", "\x00\x7f", "e\u0301 ﬁ", '\\"\\u00e9{"', "١٢٣ 1234567.5e-10"):
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == text


Write = Callable[..., str]


@pytest.fixture(scope="module")
def write() -> Write:
    """Greedy, unconstrained answers of the model, loaded as any model of transformers is."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(demo.model_folder())
    model = transformers.AutoModelForCausalLM.from_pretrained(demo.model_folder()).eval()
    assert tokenizer.eos_token_id == model.config.eos_token_id
    assert len(tokenizer) == model.get_input_embeddings().weight.shape[0]
    assert model.dtype == torch.bfloat16
    model = model.float()

    def answer(*args: Any, **kwargs: Any) -> str:
        inputs = tokenizer(demo.compose_prompt(*args, **kwargs), return_tensors="pt")
        assert inputs["input_ids"][0, 0] == tokenizer.bos_token_id
        count = inputs["input_ids"].shape[1]
        with torch.no_grad():
            out = model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                max_new_tokens=120,
                do_sample=False,
            )
        text: str = tokenizer.decode(out[0, count:], skip_special_tokens=True)
        return text

    return answer


def test_demo_model_writes_the_keys_of_an_unseen_schema(write: Write) -> None:
    properties = {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}}
    value = json.loads(write("Describe a person.", {"type": "object", "properties": properties, "required": ["name"]}))
    assert "name" in value and set(value) <= set(properties)
    assert isinstance(value["name"], str)


def test_demo_model_writes_prose(write: Write) -> None:
    assert len(write("Write a sentence.").split()) > 3


@pytest.mark.parametrize("color", ["red", "green", "blue", "yellow"])
def test_demo_model_names_the_color_of_its_prompt(write: Write, color: str) -> None:
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    assert json.loads(write(f"The car is {color}. What colour is the car?", schema)) == {"color": color}
