"""`constrain.validate` against other judges: jsonschema, the official suite, constrain's automaton, real schemas."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st
from jsonschema.validators import validator_for

import constrain
from bench.schema_suite import EXCLUDED, Group, Verdict, load_suite, spell_variants
from bench.suite_ratchet import compare_verdicts, read_ratchet
from constrain import Style
from constrain.base.errors import ConstrainError
from constrain.validation import InstanceValidator
from tests.recogniser_oracle import accepts
from tests.schema_strategies import DIALECTS, evaluating, schemas, values

RATCHET = Path(__file__).parents[1] / "schema_suite_ratchet.json"
SUITE = Path("data") / "json-schema-test-suite.tar.gz"
DEV = Path("data") / "maskbench-dev.jsonl.gz"
DANGLING = "Github_medium---o44063"
"""A schema whose reference names nothing: jsonschema does not follow it, and constrain refuses the schema."""
EVERY, MOST_COMPARED = 4, 200
ELSEWHERE = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords that jsonschema reports once for the array or object, and not where a member violates a subschema."""


def pointer_of(path: Any) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def outer(pointer: str) -> str:
    return pointer.rpartition("/")[0]


def judge_with_jsonschema(schema: Any, value: Any, dialect: Any) -> set[tuple[str | None, str]]:
    """Keyword and pointer of each error; the keyword is None for a subschema `false`."""
    return {(error.validator, pointer_of(error.absolute_path)) for error in dialect(schema).iter_errors(value)}


def is_among(violation: constrain.Violation, theirs: set[tuple[str | None, str]]) -> bool:
    """Whether jsonschema has the error: at the same place, or, of a member that must not be there, at its object."""
    for keyword in (violation.keyword, None):
        if theirs & {(keyword, violation.pointer), (keyword, outer(violation.pointer))}:
            return True
    return any(key in ELSEWHERE and f"{violation.pointer}/".startswith(f"{place}/") for key, place in theirs)


@settings(max_examples=90)
@given(st.one_of(schemas, evaluating), st.lists(values, min_size=1, max_size=5), st.sampled_from(list(DIALECTS)))
def test_verdicts_and_errors_are_those_of_jsonschema(schema: Any, instances: list[Any], dialect: str) -> None:
    if isinstance(schema, dict):
        schema = {"$schema": dialect, **schema}
    try:
        validator = InstanceValidator(schema)
    except constrain.SchemaError:  # a keyword whose value another draft has
        assume(False)
    for value in instances:
        found = validator.check_value(value)
        try:
            theirs = judge_with_jsonschema(schema, value, DIALECTS[dialect])
        except TypeError:  # jsonschema compares `dependencies` of draft 4 with what is not there
            continue
        assert bool(found) == bool(theirs), (value, found, theirs)
        for violation in found:
            assert isinstance(schema, bool) or is_among(violation, theirs), (value, violation, theirs)
        placed = validator.check_text(json.dumps(value))
        assert [(one.keyword, one.pointer, one.message) for one in placed] == [
            (one.keyword, one.pointer, one.message) for one in found
        ]
        assert all(one.line == 1 for one in placed)


@settings(max_examples=60)
@given(schemas, st.lists(values, min_size=1, max_size=4))
def test_the_verdict_is_that_of_the_automaton(schema: Any, instances: list[Any]) -> None:
    """`validate` and a Constraint with `Style.any()` read one schema by different machines."""
    validator = InstanceValidator(schema)
    try:
        grammar = constrain.json_schema(schema, style=Style.any()).grammar(constrain.Limits())
    except constrain.UnsatisfiableError:
        assert all(validator.check_value(value) for value in instances)
        return
    except ConstrainError:
        assume(False)
    for value in instances:
        text = json.dumps(value, ensure_ascii=False)
        assert accepts(grammar, text.encode()) == (not validator.check_text(text)), text


def judge_group(group: Group, registry: dict[str, Any]) -> list[Verdict]:
    try:
        validator = InstanceValidator(group.schema, registry=registry, formats=group.style.formats)
    except ConstrainError as error:
        return [Verdict(group, name, "refused", str(error)) for name, _, _ in group.tests]
    return [
        Verdict(group, name, "passed" if (not validator.check_text(spell_variants(value, "")[0])) == valid else "wrong")
        for name, value, valid in group.tests
    ]


@pytest.mark.slow
def test_the_official_suite_has_no_failures_that_the_compiler_has_not(shared: Path) -> None:
    if not (shared / SUITE).exists():
        pytest.skip(f"needs {shared / SUITE}")
    suite = load_suite(shared / SUITE)
    groups = [group for group in suite.groups if group.file not in EXCLUDED]
    verdicts = [one for group in groups for one in judge_group(group, suite.registry[group.draft])]
    worse, _ = compare_verdicts(read_ratchet(RATCHET), verdicts)
    assert len(verdicts) > 5_000
    assert not worse, "\n".join(worse[:20])


def test_real_schemas_and_their_instances(shared: Path) -> None:
    """Every instance of the development schemas has the verdict of the file, and only errors that jsonschema has."""
    if not (shared / DEV).exists():
        pytest.skip(f"needs {shared / DEV}")
    wrong, judged, compared = [], 0, 0
    with gzip.open(shared / DEV, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, islice(lines, 0, None, EVERY)):
            try:
                validator = InstanceValidator(row["schema"])
                for test in row["tests"]:
                    judged += 1
                    found = validator.check_value(test["data"])
                    if bool(found) == test["valid"]:
                        wrong.append(f"{row['id']}: {test['valid']}, {found[:2]}")
                    elif found and compared < MOST_COMPARED and '"$ref": "http' not in json.dumps(row["schema"]):
                        compared += 1
                        theirs = judge_with_jsonschema(row["schema"], test["data"], validator_for(row["schema"]))
                        wrong += [
                            f"{row['id']}: {one}"
                            for one in found
                            if "(format " not in one.message and not is_among(one, theirs)
                        ]
            except ConstrainError as error:
                if row["id"] != DANGLING:
                    wrong.append(f"{row['id']}: {error}")
    assert judged > 2_000 and compared == MOST_COMPARED
    assert not wrong, f"{len(wrong)} of {judged}\n" + "\n".join(wrong[:20])
