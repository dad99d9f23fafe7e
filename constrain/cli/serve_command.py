"""`constrain serve`: an HTTP server in the shape of OpenAI's, over one model."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import fields, replace
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Annotated, Any, get_args

import typer

from ..base.errors import ArgumentError, ConstrainError, check_choice
from ..decoding.scheduler import SLOTS
from ..serving.api_keys import ApiKeys, read_key_lines, split_keys
from ..serving.request_log import LOG_FORMATS
from ..serving.server_settings import ServerSettings
from . import display
from .constraint_options import ToolFormat
from .generate_command import load_with_note
from .kernel_notice import load_kernels
from .source_options import read_bytes

__all__ = ["serve_model"]

NEEDED = ("fastapi", "uvicorn", "prometheus_client")
"""Packages of the extra `serve`."""
LIMITS = {one.name: one for one in fields(ServerSettings) if one.type in ("int", "int | None", "float")}
"""The settings that `--limit` changes."""


def serve_model(
    model: Annotated[str, typer.Argument(help="demo (embedded), a folder, or a hub id on this machine.")] = "demo",
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 for any that is free.")] = 8_000,
    name: Annotated[str | None, typer.Option(help="Name of the model in requests and answers.")] = None,
    slots: Annotated[int, typer.Option(min=1, help="Maximum number of texts that are generated at a time.")] = SLOTS,
    api_key_file: Annotated[str | None, typer.Option(help="A file of API keys, one a line; - for stdin.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="An environment variable of API keys, separated by commas.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help=f"Change a limit: {', '.join(LIMITS)}; may be repeated."),
    ] = None,
    reasoning: Annotated[
        str | None, typer.Option(metavar="TAGS", help="Tags around the thoughts of the model: '<think> </think>'.")
    ] = None,
    tool_format: Annotated[
        ToolFormat | None,
        typer.Option(
            metavar="NAME",
            help=f"How the model writes tool calls: {', '.join(get_args(ToolFormat))}; by default as its chat template "
            "says.",
        ),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(help="json, text or none; by default text on a terminal, json elsewhere.")
    ] = None,
    no_playground: Annotated[
        bool, typer.Option("--no-playground", help="Serve no page at /, only the interface for programs.")
    ] = False,
) -> None:
    """Serve a model over HTTP: chat completions, completions and responses as OpenAI's clients call them.

    The log goes to stderr. SIGTERM and Ctrl+C let running requests end first.
    """
    check_packages()
    keys = (*read_key_file(api_key_file), *read_key_variable(api_key_env))
    ApiKeys(keys)
    check_choice("--log-format", log_format or "text", LOG_FORMATS)
    settings = change_limits(ServerSettings(model_name=name or model, api_keys=keys), limit or ())
    settings = replace(settings, tool_format=tool_format, **read_tags(reasoning))
    with display.show_progress("starting the server …"):
        from ..playground import play_server

    listener = play_server.bind_socket(host, port)
    with listener, ExitStack() as stack:
        load_kernels()
        loaded = load_with_note(model)
        url = f"http://{'[' + host + ']' if ':' in host else host}:{listener.getsockname()[1]}"
        log_format = log_format or ("text" if sys.stderr.isatty() else "json")

        def announce() -> None:
            stack.close()
            print_start(url, settings, slots, "" if no_playground else url)

        stack.enter_context(display.show_progress("starting the server …"))
        play_server.serve_model_with_page(
            loaded, settings, listener, page="none" if no_playground else "playground", slots=slots,
            log_format=log_format, on_start=announce,
        )  # fmt: skip
    display.print_note(("stopped", "dim"))


def check_packages(command: str = "serve") -> None:
    """Raise ConstrainError, with the name of the command, if a package of the extra is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConstrainError(
            f"constrain {command} needs {', '.join(missing)}, which this Python lacks",
            hint='pip install "constrain-lm[serve]"',
        )


def read_key_file(path: str | None) -> tuple[str, ...]:
    """Return the keys of a file. Raise OSError if it cannot be read, ArgumentError if it has none."""
    return () if path is None else read_key_lines(read_bytes(path).decode("utf-8", "replace"), path)


def read_key_variable(name: str | None) -> tuple[str, ...]:
    """Return the keys of an environment variable. Raise ArgumentError if it is not set or empty."""
    if name is None:
        return ()
    keys = split_keys(os.environ.get(name, ""))
    if not keys:
        raise ArgumentError(
            f"--api-key-env: the environment variable {name} is not set", hint="Or give --api-key-file."
        )
    return keys


def change_limits(settings: ServerSettings, given: list[str] | tuple[str, ...]) -> ServerSettings:
    """Return the settings with the limits of options NAME=VALUE. Raise BadParameter for one that is malformed."""
    changes: dict[str, Any] = {}
    for option in given:
        name, _, value = option.partition("=")
        if name not in LIMITS:
            close = get_close_matches(name, LIMITS, 1)
            cure = f"did you mean {close[0]}?" if close else f"the limits are {', '.join(LIMITS)}."
            raise typer.BadParameter(f"--limit is {option!r}, and there is no limit {name!r}: {cure}")
        try:
            changes[name] = (float if LIMITS[name].type == "float" else int)(value)
            replace(settings, **{name: changes[name]})
        except ArgumentError as error:
            cause = error.cause.removeprefix(f"ServerSettings({name}=...) is ")
            raise typer.BadParameter(f"--limit is {option!r}: {name} is {cause}") from None
        except ValueError:
            raise typer.BadParameter(f"--limit is {option!r}: give NAME=VALUE, such as max_queue=64.") from None
    return replace(settings, **changes)


def read_tags(reasoning: str | None) -> dict[str, Any]:
    """Return the settings of an option --reasoning. Raise BadParameter unless it has two tags."""
    if reasoning is None:
        return {}
    tags = reasoning.split()
    if len(tags) != 2:
        raise typer.BadParameter(f"--reasoning is {reasoning!r}: give two tags, such as '<think> </think>'.")
    return {"think_open": tags[0], "think_close": tags[1]}


def print_start(url: str, settings: ServerSettings, slots: int, page: str) -> None:
    """Print where the server is, and a request that works. page: address of the playground; "" if there is none."""
    display.print_note(("constrain serve", "bold"), f" · {settings.model_name} · {slots} slots")
    display.print_note("  base URL   ", (f"{url}/v1", "cyan"))
    if page:
        display.print_note("  playground ", (f"{page}/", "cyan"))
    display.print_note("  watch      ", (f"{url}/health", "cyan"), " and ", (f"{url}/metrics", "cyan"))
    if not sys.stderr.isatty():
        return
    key = ' \\\n    -H "authorization: Bearer $KEY"' if settings.api_keys else ""
    body = (
        f'{{"model": "{settings.model_name}", "max_tokens": 100,\n'
        '    "messages": [{"role": "user", "content": "Describe a person."}],\n'
        '    "structured_outputs": {"json": {"type": "object", "required": ["name"],\n'
        '      "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}}}'
    )
    display.print_note("\nTry it from another terminal:\n")
    display.print_note((
        f"  curl {url}/v1/chat/completions \\\n    -H 'content-type: application/json'{key} -d '\n    {body}'", "green",
    ))  # fmt: skip
    display.print_note("\nCtrl+C stops the server once running requests have ended.")
