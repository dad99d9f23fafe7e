"""The model of the bench's part "forced" writes the text that it is given, by every way to handle forced text."""

from __future__ import annotations

from typing import Any

import pytest

import constrain
from bench.corpus import Case, Instance
from bench.decoding.forced import MODES, find_structured_half, measure_documents
from bench.decoding.written_texts import WrittenText

SCHEMA = """{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
 "required": ["name", "age"]}"""
TEXT = '{"name":"Žofie 7","age":31}'


@pytest.fixture(scope="module")
def engine() -> Any:
    pytest.importorskip("transformers")
    with constrain.Engine("demo") as made:
        yield made


@pytest.mark.parametrize("options", [*MODES.values(), None], ids=[*MODES, "unconstrained"])
def test_the_text_is_written_to_its_end(engine: Any, options: dict[str, Any] | None) -> None:
    prompt = engine.model.prompt_ids("Describe a person.\n")
    chosen = {"draft": "none"} if options is None else {**options, "schema": SCHEMA}
    with WrittenText(engine.model.model, engine.vocabulary, len(prompt), TEXT.encode()):
        made = engine.generate(prompt, seed=3, max_tokens=60, **chosen)
    assert made.text == TEXT
    assert made.finish_reason == "complete"
    alone = engine.generate(prompt, seed=3, max_tokens=60, **chosen)
    assert alone.text != TEXT, "after the block the model writes what it would"


def test_forced_text_takes_fewer_passes_than_tokens(engine: Any) -> None:
    tests = (Instance("[]", False), Instance(TEXT, True))
    cases = [Case("person", SCHEMA, tests), Case("never", "false", ()), Case("free", '{"type": "string"}', ())]
    half, missing = find_structured_half(engine.vocabulary, cases, lambda: None)
    assert [document.data for document in half] == [TEXT.encode()]
    assert missing == 2
    rows = measure_documents(engine, half, styles=("compact",), prompt=400, seed=0, progress=lambda: None)
    limits = {row["forced text"]: row["limit"] for row in rows}
    assert limits["none"] == 1
    assert min(limits["canonical"], limits["sample"]) > 1.3
