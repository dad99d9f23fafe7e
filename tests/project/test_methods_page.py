"""docs/methods.md: every name and every test of its tables exists."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import constrain
from constrain.deciding import DECISIONS
from constrain.sampling import SAMPLERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/methods.md").read_text("utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| method")]


def find_object(name: str) -> object:
    """Return what a dotted name below `constrain` stands for."""
    parts = name.removeprefix("constrain.").split(".")
    for k in range(len(parts), 0, -1):
        if hasattr(constrain, parts[0]) and k == 1:
            found: object = getattr(constrain, parts[0])
        else:
            try:
                found = import_module(".".join(["constrain", *parts[:k]]))
            except ImportError:
                continue
        for part in parts[k:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"there is no {name}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("| "))
def test_every_name_of_a_row_exists(row: list[str]) -> None:
    """Samplers, decision rules, arguments of classes and of `generate`, and dotted names."""
    assert len(row) == 7, row
    quoted = re.findall(r"`([^`]+)`", row[2])
    assert quoted
    for name in quoted:
        option = re.fullmatch(r'(sampler|decide)="(\w+)"', name)
        argument = re.fullmatch(r"(\w+)=", name)
        call = re.fullmatch(r"([\w.]+)\(([\w=, ]+)\)", name)
        if option:
            assert option[2] in (SAMPLERS if option[1] == "sampler" else DECISIONS)
        elif argument:
            assert argument[1] in inspect.signature(constrain.generate).parameters
        elif call:
            parameters = inspect.signature(find_object(call[1])).parameters  # type: ignore[arg-type]
            assert {one.strip("= ") for one in call[2].split(",")} <= set(parameters)
        else:
            assert find_object(name) is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("| "))
def test_the_test_of_a_row_exists(row: list[str]) -> None:
    shown = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row[6])
    assert shown, row[6]
    for path, function in shown:
        source = (ROOT / path).read_text("utf-8")
        names = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
        assert any(name.startswith("test_") for name in names)
        assert not function or function in names, f"{path} has no {function}"


def test_every_sampler_and_rule_has_a_row() -> None:
    named = set(re.findall(r'(?:sampler|decide)="(\w+)"', PAGE))
    assert set(SAMPLERS) - {"markov"} <= named, "markov is the exact computation behind n-gram and HMM twists"
    classes = {kind.__name__ for kind in DECISIONS.values()}
    assert classes <= set(re.findall(r"`(\w+)`", PAGE))
