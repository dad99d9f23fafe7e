"""The command line: one file a command, one place where errors become a message and an exit code.

constrain generate | check | validate | sample | test | view | infer | explain | demo | warmup | doctor
"""

from __future__ import annotations

import io
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..base.errors import MESSAGE, ConstrainError, SchemaWarning, shorten_text
from . import (
    check_command,
    demo_command,
    display,
    doctor_command,
    explain_command,
    generate_command,
    infer_command,
    sample_command,
    test_command,
    validate_command,
    view_command,
    warm_up_command,
)
from .source_options import About

__all__ = ["app", "main", "run"]

EPILOG = (
    "Exit codes: 0 fine · 1 the answer is no (an invalid instance, nothing satisfies the schema, a refused token) · "
    "2 wrong usage or input · 3 not supported by this version, or a limit was hit."
)


class Commands(TyperGroup):
    """The commands; a message about wrong usage repeats no more of an argument than fits on a screen."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command."""
        with shortened():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Read the arguments of the command, and run it."""
        with shortened():
            return super().invoke(ctx)


@contextmanager
def shortened() -> Iterator[None]:
    """Shorten the messages of exceptions of click, which typer prints, and make them harmless to a terminal."""
    try:
        yield
    except Exception as error:
        if isinstance(said := getattr(error, "message", None), str):
            error.message = display.harmless(shorten_text(said, MESSAGE))  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=Commands,
    name="constrain",
    help="Language model output in exactly the form you asked for.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    generate_command,
    check_command,
    validate_command,
    sample_command,
    test_command,
    view_command,
    infer_command,
    explain_command,
    demo_command,
    warm_up_command,
    doctor_command,
):
    app.command(epilog=EPILOG)(
        getattr(command, command.__name__.rpartition(".")[2].removesuffix("_command").replace("_", ""))
    )


def version(wanted: bool) -> None:
    """Prints the version."""
    if wanted:
        from .. import __version__

        print(f"constrain {__version__}")
        raise typer.Exit


@app.callback()
def options(
    wanted: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, metavar=" ", help="Print the version.")
    ] = False,
) -> None:
    """What comes before the command."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line: its exit code. No exception that a user can cause gets out of here."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = tell_warning(warnings.showwarning)
            app(args=arguments, prog_name="constrain")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except (ConstrainError, OSError) as error:
        where = getattr(error, About.attribute, "")
        if "--json" in arguments:
            display.as_json({"error": display.error_json(error, where)})
        return display.fail(error, where)
    except SchemaWarning as warning:  # made an error by a filter
        display.note(("error: ", "bold red"), str(warning))
        return display.WRONG
    except KeyboardInterrupt:
        return 130
    except (RecursionError, MemoryError):
        display.note(("error: ", "bold red"), "this is nested too deeply, or too large, to be handled")
        return display.TOO_MUCH
    return 0


def tell_warning(otherwise: Callable[..., None]) -> Callable[..., None]:
    """What shows a warning: one about a schema in a line of ours, any other as before."""

    def tell(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, SchemaWarning):
            display.note(("warning: ", "yellow"), str(message))
        else:
            otherwise(message, category, *place)

    return tell


def main() -> None:
    """The script `constrain`. Where nobody reads on (`| head`), it ends quietly, as other programs do.

    What the encoding of a stream lacks is written as Python writes it in literals: é as \\xe9.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None, or anything at all, where another program replaced it
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())
