"""The format of a row: what is read, what is refused, and the seed of a row."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import ArgumentError
from constrain.base.json_documents import plain_document, write_json
from constrain.jobs import JobOptions
from constrain.jobs.job_options import CONSTRAINTS
from constrain.jobs.job_rows import RowLine, derive_seed, iterate_lines, parse_row, summarise_input

OPTIONS = JobOptions(prompt="Answer.", arguments={"max_tokens": 9})


def parse(document: Any, options: JobOptions = OPTIONS) -> Any:
    return parse_row(RowLine(7, json.dumps(document).encode()), options)


def test_a_row_with_everything() -> None:
    row = parse({"id": "a", "messages": [{"role": "user", "content": "x"}], "schema": {"type": "integer"}, "n": 2,
                 "temperature": 0, "logit_bias": {"17": 1, "yes": -1.5}, "stop": None})  # fmt: skip
    assert (row.number, row.id, row.is_json, row.error) == (7, "a", True, None)
    assert row.prompt == [{"role": "user", "content": "x"}]
    assert row.arguments["schema"] == {"type": "integer"} and row.arguments["max_tokens"] == 9
    assert row.arguments["logit_bias"] == {17: 1, "yes": -1.5} and "stop" not in row.arguments
    assert row.arguments["seed"] == derive_seed(0, "a")


def test_keys_of_a_bias_that_are_no_ids_are_texts() -> None:
    keys = ["²", "١", "9" * 5000, "-1", "007"]
    biases = parse({"prompt": "x", "logit_bias": dict.fromkeys(keys, 1)}).arguments["logit_bias"]
    assert list(biases) == [*keys[:4], 7]


def test_a_row_takes_the_number_of_its_line_and_the_options_of_the_job() -> None:
    options = JobOptions(prompt="Answer.", regex="[ab]", seed=5, arguments={"max_tokens": 9})
    row = parse({}, options)
    assert (row.id, row.prompt, row.arguments["regex"], row.arguments["seed"]) == (
        7,
        "Answer.",
        "[ab]",
        derive_seed(5, 7),
    )
    own = parse({"choices": ["x"], "seed": 3, "max_tokens": 4}, options).arguments
    assert "regex" not in own and (own["choices"], own["seed"], own["max_tokens"]) == (["x"], 3, 4)


def test_numbers_of_a_schema_are_those_that_were_written() -> None:
    texts = [b'{"schema": {"const": %s}}' % number for number in (b"9007199254740993.0", b"9007199254740992.0")]
    rows = [parse_row(RowLine(7, text), OPTIONS) for text in texts]
    assert write_json(plain_document(rows[0].arguments["schema"])) == '{"const": 9007199254740993.0}'
    assert rows[0].key != rows[1].key


@pytest.mark.parametrize("data", [b'{"prompt": "a", "prompt": "b"}', b"[" * 100_000, b'{"n": NaN}', b"\xff"])
def test_rows_that_are_not_json(data: bytes) -> None:
    row = parse_row(RowLine(7, data), OPTIONS)
    assert row.error is not None and row.error[0] == "ArgumentError" and "not JSON" in row.error[1]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"promt": "x"}, "unknown field 'promt'"),
    ({"type": "int"}, "unknown field"),
    ({"prompt": 5}, "must be a text"),
    ({"max_tokens": True}, "must be an integer"),
    ({"n": 1.0}, "must be an integer"),
    ({"temperature": "x"}, "must be a number"),
    ({"schema": "{}"}, "must be an object or true or false"),
    ({"choices": ["a", 1]}, "choices"),
    ({"regex": "a", "choices": ["a"]}, "regex and choices"),
    ({"prompt": "x", "messages": []}, "prompt and messages"),
    ({"messages": [1]}, "messages must be a list of objects"),
    ({"messages": [{"role": "user", "content": "x"}, "y"]}, "messages must be a list of objects"),
]


@pytest.mark.parametrize(("document", "said"), WRONG)
def test_invalid_row_has_an_argument_error_with_its_cause(document: dict[str, Any], said: str) -> None:
    row = parse({"id": "q", **document})
    assert row.id == "q" and row.error is not None and row.error[0] == "ArgumentError" and said in row.error[1]


@pytest.mark.parametrize("data", [b"{", b"[1]", b"5", b'"x"', b"\xff", b'{"a": NaN}', b"[" * 100_000, None,
                                  b'{"id": [1]}', b'{"id": true}', b'{"id": 1.5}'])  # fmt: skip
def test_lines_that_are_no_rows(data: bytes | None) -> None:
    row = parse_row(RowLine(7, data), OPTIONS)
    assert row.error is not None and row.id == 7


def test_an_id_that_is_too_long_is_named_with_its_limit() -> None:
    row = parse_row(RowLine(7, b'{"prompt": "a", "id": 1' + bytes([48]) * 4096 + b"}"), OPTIONS)
    assert row.error is not None
    assert "the field id is 1000" in row.error[1] and "an integer, of at most 4,096 digits" in row.error[1]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ('"temperature": 1e999', "temperature is 1E+999"),
        ('"top_p": 1e9999999', "top_p is 1E+9999999"),  # more than the context of decimals allows
        ('"frequency_penalty": -2e308', "frequency_penalty is -2E+308"),
        ('"logit_bias": {"12": 1e400}', "logit_bias of 12 is 1E+400"),
    ],
)
def test_a_number_beyond_the_range_of_floats_is_refused(field: str, said: str) -> None:
    row = parse_row(RowLine(7, f'{{"prompt": "a", {field}}}'.encode()), OPTIONS)
    assert row.error == ("ArgumentError", f"{said}: it is too large for a float")


def test_numbers_that_are_rounded_to_a_float_are_taken() -> None:
    row = parse_row(RowLine(7, b'{"prompt": "a", "temperature": 1.00000000000000000001, "top_p": 1e-999}'), OPTIONS)
    assert row.error is None and row.arguments["temperature"] == 1 and row.arguments["top_p"] == 0


def test_a_row_needs_a_prompt() -> None:
    assert parse({}, JobOptions()).error is not None


def test_blank_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"id": 1}\n\n  \r\n{"id": 2}')
    assert [(line.number, line.data) for line in iterate_lines(path)] == [(1, b'{"id": 1}\n'), (4, b'{"id": 2}')]
    assert summarise_input(path).rows == 2


def test_long_lines_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constrain.jobs.job_rows.MOST_LINE", 8)
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"1234567\n12345678\n" + b"x" * 50 + b"\n5\n123456789")
    assert [one.data for one in iterate_lines(path)] == [b"1234567\n", None, None, b"5\n", None]


@settings(max_examples=40)
@given(st.integers(0, 9), st.lists(st.one_of(st.integers(), st.text(max_size=4)), unique_by=repr, max_size=5))
def test_seeds_of_rows_differ_and_do_not_depend_on_their_order(seed: int, ids: list[int | str]) -> None:
    seeds = {repr(one): derive_seed(seed, one) for one in ids}
    assert len(set(seeds.values())) == len(seeds) and all(0 <= one < 2**63 for one in seeds.values())
    assert all(derive_seed(seed + 1, one) != derive_seed(seed, one) for one in ids)


def test_one_constraint_for_all_rows_at_most() -> None:
    given = {"schema": {}, "regex": "a", "grammar": "json", "choices": ["a"], "type": "builtins:int"}
    assert set(given) == set(CONSTRAINTS)
    for first, second in permutations(CONSTRAINTS, 2):
        with pytest.raises(ArgumentError, match="at most one"):
            JobOptions(**{name: given[name] for name in (first, second)})
    assert parse({}, JobOptions(prompt="x", type="builtins:int")).arguments["type"] is int


@pytest.mark.parametrize("name", ["int", "builtins:", ":int", "no.such:x", "builtins:nothing", "json:", "os:getcwd"])
def test_types_that_cannot_be_imported(name: str) -> None:
    with pytest.raises(ArgumentError, match="type"):
        JobOptions(type=name)
