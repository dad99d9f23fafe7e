"""The command line: one file per command, and a single place where exceptions become messages and exit codes.

constrain generate | batch | serve | choose | score | repair | check | validate | sample | test | view | infer |
explain | compare | demo | warmup | doctor
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
from ..base.version import __version__
from . import (
    batch_command,
    check_command,
    choose_command,
    compare_command,
    demo_command,
    display,
    doctor_command,
    explain_command,
    generate_command,
    infer_command,
    repair_command,
    sample_command,
    score_command,
    serve_command,
    test_command,
    validate_command,
    view_command,
    warm_up_command,
)
from .source_options import About

__all__ = ["app", "main", "run_command"]

EPILOG = (
    "Exit codes: 0 success · 1 negative result (invalid instance, unsatisfiable schema, refused token) · "
    "2 invalid usage or input · 3 unsupported by this version, or a limit was exceeded."
)


class Commands(TyperGroup):
    """The group of commands; usage errors quote at most a screenful of an argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
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
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: dict[str, Callable[..., None]] = {
    "generate": generate_command.generate_texts,
    "batch": batch_command.run_batch,
    "serve": serve_command.serve_model,
    "choose": choose_command.choose_option,
    "score": score_command.score_answer,
    "repair": repair_command.repair_answer,
    "check": check_command.check_schema,
    "validate": validate_command.validate_instances,
    "sample": sample_command.print_samples,
    "test": test_command.run_grammar_tests,
    "view": view_command.draw_grammar,
    "infer": infer_command.infer_from_files,
    "explain": explain_command.explain_constraint,
    "compare": compare_command.compare_pair,
    "demo": demo_command.run_demo,
    "warmup": warm_up_command.warm_up_kernels,
    "doctor": doctor_command.diagnose_tokenizer,
}
for name, function in COMMANDS.items():
    app.command(name, epilog=EPILOG)(function)


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
        where = getattr(error, About.attribute, "")
        if "--json" in arguments:
            display.as_json({"error": display.error_json(error, where)})
        return display.print_error(error, where)
    except SchemaWarning as warning:  # turned into an error by a warnings filter
        display.print_note(("error: ", "bold red"), str(warning))
        return display.WRONG
    except KeyboardInterrupt:
        return 130
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
    """Run the script `constrain`. If the reader of its output closes early (`| head`), it exits silently.

    Characters that the encoding of a stream lacks are written as in Python literals: é as \\xe9.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not so where another program has replaced it, perhaps by None
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run_command())
