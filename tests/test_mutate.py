"""The mutation runner: its mutants are Python, each is one change, and it tells killed from surviving."""

from __future__ import annotations

import ast
from pathlib import Path

from mutate.operators import Mutant, mutants
from mutate.selection import ROOT, asked_about, files

SAMPLE = '''
def clamp(value, low=0):
    """Not below low."""
    total = 1
    if value < low and not done(value):
        return low
    for item in value:
        total += item
        if item is None:
            break
    cache[value] = total
    note(value)
    raise ValueError(f"{value + 1}")
    return total - 1
'''


def test_each_operator_has_its_mutants() -> None:
    found = mutants("constrain/x.py", SAMPLE)
    pairs = {(one.old, one.new) for one in found}
    assert {
        ("value < low", "value <= low"),
        ("value < low", "value >= low"), ("total += item", "pass"), ("break", "pass"),
        ("cache[value] = total", "pass"), ("note(value)", "pass"), ("total - 1", "(total) + (1)"),
        ("1", "2"), ("1", "0"),
        ("not done(value)", "bool(done(value))"), ("item is None", "item is not None"), ("low", "None"),
    } <= pairs  # fmt: skip
    assert not any("value + 1" in one.old for one in found), "messages are no behaviour"
    for one in found:
        changed = one.applied(SAMPLE)
        ast.parse(changed)
        assert changed.count("\n") == SAMPLE.count("\n")
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SAMPLE)), one


def test_mutants_of_the_library_keep_its_lines() -> None:
    for file in files()[::9]:
        text = (ROOT / file).read_text("utf-8")
        for one in mutants(file, text)[::25]:
            changed = one.applied(text)
            assert changed != text and changed.count("\n") == text.count("\n"), one


def test_every_mutated_file_has_tests() -> None:
    assert len(files()) > 60
    for file in files():
        asked = asked_about(file)
        assert asked and all((ROOT / test).exists() for test in asked), file


def test_offsets_are_of_characters(tmp_path: Path) -> None:
    text = 'def f(x):\n    y = "é"\n    return x < 1\n'
    one = next(one for one in mutants("constrain/x.py", text) if one.operator == "comparison")
    assert isinstance(one, Mutant)
    assert one.applied(text) == text.replace("x < 1", one.new)
