"""The mutation runner: its mutants are Python, each is one change, and it distinguishes killed from
surviving mutants.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest

from mutate import switch
from mutate.__main__ import EQUIVALENT, is_no_change, name_mutant, read_equivalents
from mutate.operators import Mutant, list_mutants
from mutate.schema_runner import SchemaScratch
from mutate.schemata import IMPORT, SWITCH, can_switch, combine_mutants
from mutate.selection import ROOT, choose_further_tests, choose_nearest_tests, list_files

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
    found = list_mutants("constrain/x.py", SAMPLE)
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
        changed = one.apply(SAMPLE)
        ast.parse(changed)
        assert changed.count("\n") == SAMPLE.count("\n")
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SAMPLE)), one


def test_mutants_of_the_library_keep_its_lines() -> None:
    for file in list_files()[::9]:
        text = (ROOT / file).read_text("utf-8")
        for one in list_mutants(file, text)[::25]:
            changed = one.apply(text)
            assert changed != text and changed.count("\n") == text.count("\n"), one


def test_every_mutated_file_has_tests() -> None:
    assert len(list_files()) > 60
    outside = {"constrain/engine/text_enumeration.py", "constrain/integrations/transformers_language_model.py"}
    assert outside <= set(list_files()), "parts of sampling that lie in other packages"
    for file in list_files():
        asked = choose_nearest_tests(file)
        assert asked and all((ROOT / test).exists() for test in asked), file


def test_offsets_are_of_characters(tmp_path: Path) -> None:
    text = 'def f(x):\n    y = "é"\n    return x < 1\n'
    one = next(one for one in list_mutants("constrain/x.py", text) if one.operator == "comparison")
    assert isinstance(one, Mutant)
    assert one.apply(text) == text.replace("x < 1", one.new)


RUNNABLE = f'''{IMPORT}


def total(values, low=0):
    """A sum with a few branches."""
    found = 1
    for value in values:
        if value < low and not value % 2 == 1 or value == 9:
            continue
        found += (value +
                  1) * 2
        found = found - 1 if value > 3 else found
        if found > 50:
            break
    return found - 1, found
'''


def outcome(text: str, argument: list[int]) -> Any:
    """What `total` of a text gives: its result, or the kind of its error."""
    scope: dict[str, Any] = {"_active": switch.active}
    exec(compile(text, "x.py", "exec"), scope)
    try:
        return scope["total"](argument)
    except Exception as error:
        return type(error)


def test_a_schema_does_what_each_of_its_mutants_does(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list_mutants("constrain/x.py", RUNNABLE)
    schema = combine_mutants(RUNNABLE, dict(enumerate(found, 1))).replace(SWITCH, IMPORT)
    assert schema.count("_active(") == len(found) > 30
    arguments = [[], [1, 2, 3], [-2, -1, 9, 4, 5], [30, 40], [0, 7, 9, 9, 60, 1]]
    monkeypatch.setenv(switch.VARIABLE, "0")
    try:
        for number, one in enumerate([None, *found]):
            switch.activate(number)
            text = one.apply(RUNNABLE) if one else RUNNABLE
            for argument in arguments:
                assert outcome(schema, argument) == outcome(text, argument), one
    finally:
        switch.activate(0)


def test_schemata_of_the_library_keep_its_lines() -> None:
    for file in list_files()[::7]:
        text = (ROOT / file).read_text("utf-8")
        fit = [one for one in list_mutants(file, text)[::40] if can_switch(text, one)]
        changed = combine_mutants(text, dict(enumerate(fit, 1)))
        ast.parse(changed)
        assert changed.count("\n") >= text.count("\n") and (SWITCH in changed or not fit)  # files of constants


def test_can_switch_is_false_for_code_that_runs_at_kernel_compilation() -> None:
    text = f"""{IMPORT}
@kernel("int64(int64)")
def one(c):
    return c + 1
@intrinsic
def two(context):
    def codegen(builder):
        return builder + 1
    return codegen
@overload(one)
def three(x):
    def single(x):
        return x + 1
    return single
"""
    file = "constrain/kernels/x.py"
    can = {(one.function, can_switch(text, one)) for one in list_mutants(file, text)}
    assert can == {("one", True), ("two", False), ("codegen", False), ("three", False), ("single", True)}
    pattern = f"{IMPORT}\ndef f(x):\n    match x:\n        case 1:\n            return x\n"
    assert {can_switch(pattern, one) for one in list_mutants("constrain/x.py", pattern) if one.old == "1"} == {False}


def test_compiled_code_reads_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import njit

    active = switch.active

    @njit("int64(int64)")  # type: ignore[untyped-decorator]
    def choose(n: int) -> int:
        return n + 1 if active(7) else n - 1 if active(8) else n

    monkeypatch.setenv(switch.VARIABLE, "0")
    try:
        for number, result in ((0, 10), (7, 11), (8, 9), (9, 10)):
            switch.activate(number)
            assert choose(10) == result
    finally:
        switch.activate(0)


def test_survivors_run_further_tests() -> None:
    for file in list_files()[::5]:
        later = choose_further_tests(file)
        assert not set(later).intersection(choose_nearest_tests(file)) and all((ROOT / test).exists() for test in later)


MODULE = f'''{IMPORT}


def countdown(n):
    """Down to 0."""
    steps = 0
    while n > 0:
        n -= 1
        steps += 1
    return steps


def unused(n):
    return n + 1
'''
CHECKS = """
from constrain.module import countdown

def test_quick():
    assert countdown(0) == 0

def test_steps():
    assert countdown(3) == 3

def test_that_fails_anyhow():
    assert False
"""


@pytest.mark.slow
def test_the_fork_server_distinguishes_killed_from_surviving_mutants(tmp_path: Path) -> None:
    """By a failing test, by a loop, by none. Tests that fail without a mutant, or do not reach it, do not run."""
    for folder in ("constrain", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    shutil.copytree(ROOT / "mutate", tmp_path / "mutate")
    shutil.copy2(ROOT / "mutate" / "switch.py", tmp_path / "constrain" / "switch.py")
    (tmp_path / "tests" / "test_module.py").write_text(CHECKS, "utf-8")
    (tmp_path / "tests" / "numba_plugin.py").touch()  # this package has no kernels
    some = {("steps += 1", "pass"), ("n -= 1", "pass"), ("steps", "None"), ("n + 1", "(n) - (1)"), ("n > 0", "n >= 0")}
    found = [one for one in list_mutants("constrain/module.py", MODULE) if (one.old, one.new) in some]
    scratch = SchemaScratch.__new__(SchemaScratch)
    scratch.folder, scratch.store, scratch.numbered = tmp_path, tmp_path / "store", dict(enumerate(found, 1))
    (tmp_path / "constrain" / "module.py").write_text(combine_mutants(MODULE, scratch.numbered), "utf-8")
    asked = {number: (["tests/test_module.py"], ()) for number in scratch.numbered}
    verdicts = {(one.mutant.old, one.mutant.new): one for one in scratch.verdicts([asked, asked], 2)}
    assert set(verdicts) == some
    killed = {change: one.killed for change, one in verdicts.items()}
    assert killed["steps += 1", "pass"] == "tests/test_module.py::test_steps"
    assert killed["n -= 1", "pass"] == "SIGXCPU"
    assert killed["steps", "None"].startswith("tests/test_module.py::")
    assert killed["n + 1", "(n) - (1)"] == "" and verdicts["n + 1", "(n) - (1)"].tests == 0
    assert verdicts["n > 0", "n >= 0"].tests == 2


def test_explained_mutants_are_mutants_of_the_library() -> None:
    """Each line of `equivalent.txt` names one or more, and has a reason."""
    explained = read_equivalents()
    found = [
        name_mutant(one)
        for file in list_files()
        if any(file in one for one in explained)
        for one in list_mutants(file, read(file))
    ]
    assert explained <= set(found), explained.difference(found)
    assert all("  # " in line for line in EQUIVALENT.read_text("utf-8").splitlines() if line[:1] not in ("", "#"))


def read(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def test_adding_a_field_that_is_0_is_no_mutant() -> None:
    """`x - FIELD` is the same then; a field that is not the first one makes a mutant."""
    text = "def f(state):\n    return state + O_BLOCK, state + O_FLAGS, state + 0\n"
    file = "constrain/kernels/object_states.py"
    found = {one.old: one for one in list_mutants(file, text) if one.operator == "arithmetic"}
    assert is_no_change(found["state + O_BLOCK"]) and is_no_change(found["state + 0"])
    without = {
        one.old: one for one in list_mutants(file, (ROOT / file).read_text("utf-8")) if one.operator == "arithmetic"
    }
    assert not is_no_change(without["state + O_NAMES"])
