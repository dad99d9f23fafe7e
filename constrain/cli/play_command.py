"""`constrain play`: the playground alone, a page in which constraints are tried out."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import ArgumentError, check_choice
from ..serving.api_keys import ApiKeys
from ..serving.request_log import LOG_FORMATS
from ..serving.server_settings import ServerSettings
from . import display
from .generate_command import load_with_note
from .kernel_notice import load_kernels
from .serve_command import change_limits, check_packages, read_key_file, read_key_variable

if TYPE_CHECKING:
    from ..integrations.transformers_models import LoadedModel

__all__ = ["play_with_constraints"]

MODEL_PACKAGES = ("torch", "transformers", "safetensors", "tokenizers")
"""Packages without which the page has no model."""
SLOTS = 16


def play_with_constraints(
    model: Annotated[
        str, typer.Argument(help="demo (embedded), a folder, or a hub id on this machine; none for a page without one.")
    ] = "demo",
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 for any that is free.")] = 8_000,
    api_key_file: Annotated[str | None, typer.Option(help="A file of API keys, one a line; - for stdin.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="An environment variable of API keys, separated by commas.")
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Change a limit, as for serve; may be repeated.")
    ] = None,
    log_format: Annotated[str, typer.Option(help="How requests are logged to stderr: json, text or none.")] = "none",
) -> None:
    """Serve a page in which schemas, patterns and grammars are tried out, and shown at work on a model.

    SIGTERM and Ctrl+C stop it.
    """
    check_packages("play")
    keys = (*read_key_file(api_key_file), *read_key_variable(api_key_env))
    ApiKeys(keys)
    check_choice("--log-format", log_format, LOG_FORMATS)
    settings = change_limits(ServerSettings(model_name=model, api_keys=keys), limit or ())
    with display.show_progress("starting the server …"):
        from ..playground import play_server

    with play_server.bind_socket(host, port) as listener:
        load_kernels()
        loaded = load_if_possible(model)
        url = f"http://{'[' + host + ']' if ':' in host else host}:{listener.getsockname()[1]}/"
        play_server.serve_playground(
            loaded, settings, listener, slots=SLOTS, log_format=log_format, on_start=lambda: print_address(url)
        )
    display.print_note(("stopped", "dim"))


def load_if_possible(model: str) -> LoadedModel | None:
    """Return the model; None, with a note, if it is "none" or the packages that run the embedded model are missing.

    Raise ArgumentError if they are missing for another model.
    """
    missing = [name for name in MODEL_PACKAGES if find_spec(name) is None]
    if model == "none":
        return None
    if not missing:
        return load_with_note(model)
    if model != "demo":
        raise ArgumentError(
            f"the model {model} needs {', '.join(missing)}, which this Python lacks",
            hint="pip install 'constrain-lm[transformers]'",
        )
    display.print_note(
        ("no model: ", "yellow"), f"{', '.join(missing)} missing, so the page checks texts only. ",
        ("pip install 'constrain-lm[transformers]'", "cyan"),
    )  # fmt: skip
    return None


def print_address(url: str) -> None:
    """Print where the page is."""
    display.print_note(("constrain play", "bold"), " · ", (url, "cyan"))
    if sys.stderr.isatty():
        display.print_note("Ctrl+C stops it.")
