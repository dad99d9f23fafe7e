"""The command line: one file per command, and a single place where exceptions become messages and exit codes.

`command_table` lists the commands.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

import typer

from ..base.errors import MESSAGE, ConstrainError, SchemaWarning, shorten_text
from ..base.version import __version__
from . import display
from .command_table import COMMANDS, EPILOG, load_command
from .help_pages import GroupPage
from .standard_streams import discard_answer, escape_missing_characters, flush_answer, open_closed_outputs

__all__ = ["app", "main", "run_command"]


class Commands(GroupPage):
    """The group of commands, which are imported when they are called.

    Usage errors quote at most a screenful of an argument.
    """

    summaries: ClassVar = {name: row.summary for name, row in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, imported if it was not yet, or None if there is none of this name."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(load_command(cmd_name), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, command and arguments of a command line; suggest names that are near to an unknown one."""
        if args and args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; without any argument, print the list of commands to stderr."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(display.WRONG)
        with shorten_messages():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of the command, and run it."""
        with shorten_messages():
            return super().invoke(ctx)


@contextmanager
def shorten_messages() -> Iterator[None]:
    """Shorten the messages of click exceptions, which typer prints, and replace control characters in them."""
    try:
        yield
    except Exception as error:
        if isinstance(message := getattr(error, "message", None), str):
            error.message = display.replace_controls(shorten_text(message, MESSAGE))  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=Commands,
    name="constrain",
    help="Constrain the output of language models to a schema, pattern or grammar.",
    epilog=EPILOG,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    """Print the version."""
    if wanted:
        print(f"constrain {__version__}")
        raise typer.Exit


@app.callback()
def read_global_options(
    wanted: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, metavar=" ", help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. Every exception that a user can cause is handled here."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = print_warnings(warnings.showwarning)
            app(args=arguments, prog_name="constrain")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except (ConstrainError, OSError) as error:
        where = getattr(error, display.FILE_ATTRIBUTE, "")
        if not where and isinstance(error, OSError) and error.filename is None and flush_answer() is not None:
            where = "stdout"
        if "--json" in arguments:
            display.as_json({"error": display.error_json(error, where)})
        return display.print_error(error, where)
    except SchemaWarning as warning:  # turned into an error by a warnings filter
        display.print_note(("error: ", "bold red"), str(warning))
        return display.WRONG
    except KeyboardInterrupt:
        display.print_note(("interrupted", "bold yellow"))
        return display.INTERRUPTED
    except (RecursionError, MemoryError):
        display.print_note(("error: ", "bold red"), "the input is nested too deeply or is too large")
        return display.TOO_MUCH
    return 0


def print_warnings(fallback: Callable[..., None]) -> Callable[..., None]:
    """Return a replacement for `warnings.showwarning`.

    It prints a SchemaWarning as one line, and passes other warnings to `fallback`.
    """

    def show(message: Warning | str, category: type[Warning], *details: Any) -> None:
        if issubclass(category, SchemaWarning):
            display.print_note(("warning: ", "yellow"), str(message))
        else:
            fallback(message, category, *details)

    return show


def main() -> None:
    """Run the script `constrain`. If the reader of its output closes early (`| head`), it exits silently. After Ctrl-C,
    what is kept has been printed, and the process ends at once. An answer that cannot be written is an error.

    Characters that the encoding of a stream lacks are written as in JSON: é as \\u00e9.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    open_closed_outputs()
    escape_missing_characters()
    code = run_command()
    if (unwritten := flush_answer()) is not None:
        if code in (display.FINE, display.NO):
            code = display.print_error(unwritten, "stdout")
        discard_answer()
    if code == display.INTERRUPTED:  # with torch loaded, the interpreter takes a second of work or more to end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
