"""`constrain doctor`: small models made on the spot, each with one fault, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from constrain.base.errors import VocabularyError
from constrain.integrations.model_diagnosis import (
    Finding,
    ModelDiagnosis,
    diagnose_model,
    read_widths,
)
from tests import model_factory, tokenizer_factory

CHAT = (
    "{% for m in messages %}<|turn|>{{ m['role'] }}: {{ m['content'] }}<|turn|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant: {% endif %}"
)
Change = Callable[[Any], None]
Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Saves a small model and its tokenizer, after changes to the tokenizer, and to the configs by file name."""

    def saving(change: Change | None = None, family: str = "llama", **configs: dict[str, Any]) -> Path:
        loaded = model_factory.build_model(family)
        tokenizer = model_factory.build_tokenizer(family)
        tokenizer.padding_side = "left"
        tokenizer.model_max_length = 100
        if change is not None:
            change(tokenizer)
        loaded.model.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        for name, values in configs.items():
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
        return tmp_path

    return saving


def finding(diagnosis: ModelDiagnosis, check: str) -> Finding:
    return next(one for one in diagnosis.findings if one.check == check)


def set_chat(template: str) -> Change:
    def change(tokenizer: Any) -> None:
        tokenizer.chat_template = template

    return change


def test_a_model_without_faults(folder: Folder) -> None:
    diagnosis = diagnose_model(folder())
    assert diagnosis.is_fine, diagnosis.findings
    assert {one.status for one in diagnosis.findings} <= {"fine", "note"}
    assert "13 of them padding" in finding(diagnosis, "widths").what
    assert diagnosis.vocabulary is not None
    assert all(one.why or one.status == "fine" for one in diagnosis.findings)


def test_the_embedded_model() -> None:
    assert diagnose_model("demo").is_fine


def test_shapes_are_read_without_the_weights(folder: Folder) -> None:
    path = folder()
    loaded = model_factory.build_model("llama").model
    rows = loaded.get_output_embeddings().weight.shape[0]
    assert read_widths(path) == (rows, loaded.get_input_embeddings().weight.shape[0])


@pytest.mark.parametrize(
    ("configs", "check", "words"),
    [
        ({"config": {"vocab_size": 700}}, "widths", "config.json says 700"),
        ({"generation_config": {"eos_token_id": 9999}}, "end tokens", "generation_config.json declares [9999]"),
    ],
)
def test_faults_of_configs(folder: Folder, configs: dict[str, Any], check: str, words: str) -> None:
    diagnosis = diagnose_model(folder(**configs))
    found = finding(diagnosis, check) if diagnosis.vocabulary is not None else diagnosis.findings[0]
    assert not diagnosis.is_fine and found.status == "fault"
    assert found.setting
    if found.check == check:
        assert words in found.what and found.why


def test_the_tokenizer_of_another_model(folder: Folder) -> None:
    path = folder()
    other = tokenizer_factory.wrapped(tokenizer_factory.byte_level_bpe(), "<|end|>")
    other.add_tokens([f"<extra{k}>" for k in range(40)])
    other.save_pretrained(path)
    diagnosis = diagnose_model(path)
    found = finding(diagnosis, "widths")
    assert not diagnosis.is_fine and found.status == "fault"
    assert "tokenizer has 540 tokens" in found.what or "tokenizer has" in found.what
    assert "resize_token_embeddings" in found.setting


def test_a_tokenizer_that_is_not_byte_exact(folder: Folder) -> None:
    path = folder()
    for file in path.glob("tokenizer*"):
        file.unlink()
    tokenizer_factory.wrapped(tokenizer_factory.word_piece(), "[SEP]").save_pretrained(path)
    diagnosis = diagnose_model(path)
    assert diagnosis.vocabulary is None and not diagnosis.is_fine
    assert finding(diagnosis, "bytes of tokens").status == "fault"
    assert finding(diagnosis, "coverage").what.startswith("not checked")


def test_an_answer_ends_with_a_token_that_is_no_end_token(folder: Folder) -> None:
    diagnosis = diagnose_model(folder(set_chat(CHAT)))
    found = finding(diagnosis, "end of a turn")
    assert found.status == "fault" and "<|turn|>" in found.what
    assert diagnosis.vocabulary is not None
    turn, end = diagnosis.vocabulary.special["<|turn|>"], diagnosis.vocabulary.eos_ids[0]
    assert str(sorted((turn, end))) in found.setting
    declared = diagnose_model(folder(set_chat(CHAT), generation_config={"eos_token_id": [turn, end]}))
    assert finding(declared, "end of a turn").status == "fine"
    assert finding(declared, "end tokens").status == "note"  # the configs differ from each other


@pytest.mark.parametrize(
    ("template", "status", "words"),
    [
        ("{{ raise_exception('no') }}", "fault", "it fails"),
        ("{{ 1 / }}", "fault", "it fails"),
        ("fixed text", "fault", "leaves out the message"),
        ("{{ messages[0]['content'] }}", "note", "ignores add_generation_prompt"),
        (CHAT.replace("<|turn|>", "#"), "fine", "opens the answer"),
    ],
)
def test_chat_templates(folder: Folder, template: str, status: str, words: str) -> None:
    found = finding(diagnose_model(folder(set_chat(template))), "chat template")
    assert (found.status, words in found.what) == (status, True), found


def test_a_begin_token_twice(folder: Folder) -> None:
    def change(tokenizer: Any) -> None:
        tokenizer.chat_template = "{{ bos_token }}{{ messages[0]['content'] }}"

    found = finding(diagnose_model(folder(change, family="mistral")), "begin token")
    assert found.what
    loaded = model_factory.build_tokenizer("mistral")
    adds = loaded("hi")["input_ids"][0] == loaded.bos_token_id
    assert (found.status == "note") == adds


def test_padding(folder: Folder) -> None:
    def right(tokenizer: Any) -> None:
        tokenizer.padding_side = "right"

    def without(tokenizer: Any) -> None:
        tokenizer.pad_token = None

    found = finding(diagnose_model(folder(right)), "padding")
    assert found.status == "note" and found.setting == 'tokenizer.padding_side = "left"'
    found = finding(diagnose_model(folder(without)), "padding")
    assert found.status == "note" and "pad_token = tokenizer.eos_token" in found.setting


def test_context(folder: Folder) -> None:
    def longer(tokenizer: Any) -> None:
        tokenizer.model_max_length = 5000

    found = finding(diagnose_model(folder(longer)), "context")
    assert found.status == "note" and "5,000" in found.what


def test_leading_space(folder: Folder) -> None:
    assert finding(diagnose_model(folder(family="mistral")), "leading space").status == "note"


def test_a_tokenizer_file_alone(folder: Folder) -> None:
    path = folder() / "tokenizer.json"
    with pytest.raises(VocabularyError, match="end token"):
        diagnose_model(path)


def test_damaged_weights_are_refused(folder: Folder) -> None:
    path = folder()
    for content in (b"", b"\xff" * 16, b"\x05\x00\x00\x00\x00\x00\x00\x00nojso"):
        (path / "model.safetensors").write_bytes(content)
        with pytest.raises(VocabularyError, match="safetensors"):
            diagnose_model(path)


def test_there_is_no_such_model() -> None:
    with pytest.raises(VocabularyError):
        diagnose_model("/no/such")
