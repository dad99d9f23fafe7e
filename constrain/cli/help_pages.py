"""Help pages: options under headings, each with its value and explanation, wrapped by words at any terminal width.

The layout is that of Typer's plain pages, with the options of a `rich_help_panel` under a heading of their own. Tables
with a column each for names, values and texts leave the texts too little room on narrow terminals.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from .display import answer_console

__all__ = ["SHARED", "CommandPage", "GroupPage"]

MOST_COLUMNS = 100
"""Maximum width of a page in columns: longer lines are hard to read."""
NAME_COLUMNS = 26
"""Maximum width of the column of names in an 80-column page; a longer name has a line of its own."""
SHARED = "How JSON is spelled"
"""The heading of the options that many commands share; it comes last."""
VALUES = {"int": "N", "integer": "N", "float": "X", "str": "TEXT", "string": "TEXT"}
"""What stands for a value of a type that has no name of its own (`metavar`)."""
Row = tuple[str, str]


class CommandPage(TyperCommand):
    """A command with the help page of this module."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page of the command."""
        write_page(self, ctx, formatter, {})

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name of the command in its usage line."""
        return ["[OPTIONS]", *(argument_usage(one) for one in self.get_params(ctx) if is_argument(one))]


class GroupPage(TyperGroup):
    """A group of commands with the help page of this module. summaries: the line of each command in the list."""

    summaries: ClassVar[Mapping[str, str]] = {}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page of the group."""
        write_page(self, ctx, formatter, self.summaries)


def write_page(command: Any, ctx: Any, formatter: Any, commands: Mapping[str, str]) -> None:
    """Write usage, description, arguments, options by heading, commands and epilog to a click HelpFormatter."""
    # Also where stdout is a pipe to a pager, the width is that of the terminal.
    width = formatter.width = min(answer_console().width, MOST_COLUMNS)
    pieces = " ".join(command.collect_usage_pieces(ctx))
    formatter.write_usage(ctx.command_path, pieces)
    for paragraph in (command.help or "").split("\n\n"):
        formatter.write("\n" + wrap_text(paragraph, width))
    for heading, rows in list_sections(command, ctx).items():
        write_section(formatter, heading, rows, width)
    if commands:
        write_section(formatter, "Commands", commands.items(), width)
    formatter.write("\n" + wrap_text(command.epilog or "", width))


def wrap_text(text: str, width: int, indent: str = "") -> str:
    """Return a paragraph in lines of at most `width` columns; no word is divided."""
    lines = textwrap.wrap(
        " ".join(text.split()), width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "".join(f"{line}\n" for line in lines)


def style_text(text: str, **style: Any) -> str:
    """Return a text in a style, unless NO_COLOR or TERM=dumb asks for none. Where no terminal is, click removes it."""
    console = Console(force_terminal=True)
    return text if console.no_color or console.color_system is None else typer.style(text, **style)


def write_section(formatter: Any, heading: str, rows: Iterable[Row], width: int) -> None:
    """Write a heading and its rows: names to the left, their texts to the right."""
    rows = list(rows)
    most = min(NAME_COLUMNS, width // 3)
    column = max((len(name) for name, _ in rows if len(name) <= most), default=most // 2) + 4
    formatter.write("\n" + style_text(heading, bold=True) + "\n")
    for name, text in rows:
        lines = wrap_text(text, width, " " * column).splitlines() or [" " * column]
        if len(name) + 4 <= column:
            lines[0] = f"  {style_text(name, fg='cyan')}{lines[0][2 + len(name) :]}".rstrip()
        else:
            lines.insert(0, f"  {style_text(name, fg='cyan')}")
        formatter.write("".join(f"{line}\n" for line in lines))


def list_sections(command: Any, ctx: Any) -> dict[str, list[Row]]:
    """Return the rows of arguments and options by heading, in the order of the command."""
    sections: dict[str, list[Row]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        heading = "Arguments" if is_argument(parameter) else "Options"
        panel = getattr(parameter, "rich_help_panel", None)
        name = argument_name(parameter) if is_argument(parameter) else option_name(parameter, record[0])
        sections.setdefault(panel or heading, []).append((name, describe_parameter(record[1])))
    return dict(sorted(sections.items(), key=lambda item: item[0] == SHARED))


def is_argument(parameter: Any) -> bool:
    """Return whether a click parameter is an argument, not an option."""
    return bool(parameter.param_type_name == "argument")


def argument_name(argument: Any) -> str:
    """Return the name of an argument in help pages."""
    name: str = argument.metavar or argument.name.upper()
    return name.removesuffix("...")


def argument_usage(argument: Any) -> str:
    """Return an argument in a usage line: in brackets if it may be left out, with dots if it may be repeated."""
    name = argument_name(argument) + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def option_name(option: Any, shown: str) -> str:
    """Return the names of an option, short ones first, and what stands for its value.

    shown: both, as Typer shows them.
    """
    names = ", ".join(sorted(option.opts, key=len))
    if option.is_flag or option.metavar == " ":
        return names
    if option.metavar is not None:
        return f"{names} {option.metavar}"
    return f"{names} {value_name(shown)}"


def value_name(shown: str) -> str:
    """Return what stands for the value of an option as Typer shows it, such as ``-n <int range> [x>=1]``."""
    shown = re.sub(r"^(-[^ ,]+(, )?)+", "", shown)
    bare = re.sub(r"\[[^]]*[<>=][^]]*\]", "", shown).strip().strip("<>").removeprefix("list[").rstrip("]")
    kind = bare.removesuffix(" range").lower()
    return VALUES.get(kind, bare.strip("[]"))


def describe_parameter(text: str) -> str:
    """Return the text of a parameter with its default and range in words. Typer appends them in brackets."""
    match = re.search(r"\s*\[((?:default: |required|[\w.]+<|x[<>]).*)\]$", text)
    if match is None:
        return text
    parts = [part for part in match[1].split("; ") if part != "required"]
    described = [range_in_words(part) for part in parts]
    return text[: match.start()] + (f" ({'; '.join(described)})" if described else "")


def range_in_words(part: str) -> str:
    """Return a range such as ``0<=x<=1`` in words, and anything else unchanged."""
    match = re.fullmatch(r"(?:([\w.-]+)<=)?x(?:(>=|<=)([\w.-]+))?", part)
    if match is None or (match[1] is None and match[2] is None):
        return part
    if match[1] is not None and match[3] is not None:
        return f"{match[1]} to {match[3]}"
    if match[1] is not None:
        return f"at least {match[1]}"
    return f"at {'least' if match[2] == '>=' else 'most'} {match[3]}"
