"""The command line: one file a command, one place where errors become a message and an exit code.

constrain generate | check | validate | sample | test | view | infer | explain | demo | warmup | doctor
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from ..errors import ConstrainError, SchemaWarning
from . import check, demo, doctor, explain, generate, infer, sample, show, test, validate, view, warmup
from .options import About

__all__ = ["app", "main", "run"]

EPILOG = (
    "Exit codes: 0 fine · 1 the answer is no (an invalid instance, nothing satisfies the schema, a refused token) · "
    "2 wrong usage or input · 3 not supported by this version, or a limit was hit."
)

app = typer.Typer(
    name="constrain",
    help="Language model output in exactly the form you asked for.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (generate, check, validate, sample, test, view, infer, explain, demo, warmup, doctor):
    app.command(epilog=EPILOG)(getattr(command, command.__name__.rpartition(".")[2]))


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
            show.as_json({"error": show.error_json(error, where)})
        return show.fail(error, where)
    except SchemaWarning as warning:  # made an error by a filter
        show.note(("error: ", "bold red"), str(warning))
        return show.WRONG
    except KeyboardInterrupt:
        return 130
    except (RecursionError, MemoryError):
        show.note(("error: ", "bold red"), "this is nested too deeply, or too large, to be handled")
        return show.TOO_MUCH
    return 0


def tell_warning(otherwise: Callable[..., None]) -> Callable[..., None]:
    """What shows a warning: one about a schema in a line of ours, any other as before."""

    def tell(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, SchemaWarning):
            show.note(("warning: ", "yellow"), str(message))
        else:
            otherwise(message, category, *place)

    return tell


def main() -> None:
    """The script `constrain`. Where nobody reads on (`| head`), it ends quietly, as other programs do."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(run())
