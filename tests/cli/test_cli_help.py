"""Help pages at narrow terminals: whole words, no cut, no line that is too long; and the list of commands."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("typer")

from constrain.cli import app
from constrain.cli.command_table import COMMANDS, load_command
from constrain.cli.display import find_widths, print_table
from constrain.cli.help_pages import describe_parameter, style_text, value_name, wrap_text

ROOT = Path(__file__).resolve().parents[2]


def page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, *arguments: str) -> str:
    """What --help prints on a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    assert app.run_command([*arguments, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_no_line_is_too_long_and_no_word_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    text = page(capsys, monkeypatch, width, *([command] if command else []))
    lines = text.splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert not [line for line in lines if line != line.rstrip()]
    assert "…" not in text and "│" not in text
    if command:
        flat = " ".join(text.split())
        for parameter in load_command(command).params:
            for name in parameter.opts:
                assert name in flat or parameter.param_type_name == "argument"
            help = parameter.help or ""
            assert " ".join(help.split()) in flat, "the words of a text are together, in their order"


def test_every_command_is_listed_with_its_summary(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page(capsys, monkeypatch, 80)
    for name, row in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(row.summary)}$", text, re.M), name


def test_the_list_of_commands_needs_no_kernels() -> None:
    code = (
        "import sys; from constrain.cli.app import run_command\n"
        "assert run_command(['--help']) == 0 and run_command(['--version']) == 0\n"
        "assert run_command([]) == 2 and run_command(['generat']) == 2\n"
        "assert not {'numba', 'torch', 'constrain.kernels.masks'} & set(sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "Did you mean generate?" in answer.stderr
    assert "Commands" in answer.stderr, "without a command the list goes to stderr"


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("--seed <int>", "N"), ("-n <int range> [x>=1]", "N"), ("--top-p <float range> [0<=x<=1]", "X"),
        ("--stop <list[str]>", "TEXT"), ("--chat <plain|template>", "plain|template"), ("--seed INTEGER", "N"),
        ("--chat [plain|template]", "plain|template"), ("-o, --output TEXT", "TEXT"),
    ],
)  # fmt: skip
def test_values_of_options(shown: str, name: str) -> None:
    assert value_name(shown) == name


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("How many.  [default: 1; x>=1]", "How many. (default: 1; at least 1)"),
        ("A share.  [0<=x<=1]", "A share. (0 to 1)"),
        ("At most.  [x<=1]", "At most. (at most 1)"),
        ("A file.  [required]", "A file."),
        ("A list [of things]", "A list [of things]"),
    ],
)
def test_defaults_and_ranges_in_words(text: str, described: str) -> None:
    assert describe_parameter(text) == described


def test_wrapping_keeps_long_words() -> None:
    assert wrap_text("a " + "b" * 30 + " c", 10) == "a\n" + "b" * 30 + "\nc\n"


WORDS = st.lists(
    st.sampled_from(["type", "additionalProperties", "/a/long/pointer/of/a/schema", "of", "a"]), max_size=6
)


@given(rows=st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4), width=st.integers(20, 90))
@settings(max_examples=50, deadline=None)
def test_tables_divide_no_word_and_lose_none(rows: list[tuple[list[str], ...]], width: int) -> None:
    fields = [[" ".join(field) for field in row] for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", TerminalText())
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm")
        print_table(("where", "keywords", "how"), fields)
        out = re.sub(r"\x1b\[[\d;]*m", "", sys.stdout.getvalue())  # type: ignore[attr-defined]
    assert max(map(len, out.splitlines())) <= width
    words = Counter(word for row in rows for field in row for word in field if not word.startswith("/"))
    letters = Counter("".join(word for row in rows for field in row for word in field) + "wherekeywordshow")
    assert letters == Counter("".join(out.split())), "nothing is cut off"
    widths = find_widths(("where", "keywords", "how"), fields, width)
    fits = widths != [None] * 3 or width > 88
    assert not fits or words <= Counter(out.split())


class TerminalText(io.StringIO):
    """A text that takes what is printed, and that looks like a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "value", "is_styled"), [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("TERM", "xterm", True)]
)
def test_styles_only_where_the_terminal_has_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, is_styled: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    assert (style_text("Options", bold=True) != "Options") is is_styled
