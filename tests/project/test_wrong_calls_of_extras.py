"""Wrong calls of the server, custom tools, batch jobs and plug-ins, as in `test_wrong_calls`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import constrain
from constrain import dialogue
from constrain.dialogue import custom_tools
from constrain.jobs import JobOptions, JobReport, RayCluster, run_job
from constrain.plugins.llama_cpp_processor import LlamaConstraintProcessor
from constrain.plugins.mlx_processor import MlxConstraintProcessor, make_mlx_processors
from tests.project.test_wrong_calls import Call, constraint, form, junk, model, vocabulary

pytest.importorskip("fastapi")

from constrain.serving.application import create_app
from constrain.serving.request_log import RequestLog
from constrain.serving.server_settings import ServerSettings

TOOL = custom_tools.CustomTool("f", "", None)
SETTINGS = ServerSettings()


def engine() -> constrain.Engine:
    return constrain.Engine(model(), vocabulary())


def run_here(source: Any, output: Any, options: Any, cluster: Any, on_progress: Any) -> Any:
    """Run a job of one row in a temporary folder, so that a junk relative path leaves no file."""
    with TemporaryDirectory() as folder:
        Path(folder, "in").write_text("[]\n", "utf-8")
        source, output = (Path(folder, one) if isinstance(one, (str, Path)) else one for one in (source, output))
        return run_job(source, output, options, cluster=cluster, on_progress=on_progress)


CALLS: dict[str, Call] = {
    "create_app": (
        create_app,
        lambda: {"engine": engine(), "settings": SETTINGS, "log": RequestLog("none"), "additions": ()},
    ),
    "ServerSettings": (
        ServerSettings,
        lambda: {name: getattr(SETTINGS, name) for name in inspect.signature(ServerSettings).parameters},
    ),
    "RequestLog": (RequestLog, lambda: {"format": "json", "write": print}),
    "CustomTool": (
        custom_tools.CustomTool, lambda: {"name": "f", "description": "x", "form": form(), "definition": ""},
    ),
    "custom_input_form": (custom_tools.custom_input_form, lambda: {"tool": TOOL}),
    "custom_calls": (custom_tools.custom_calls, lambda: {"tools": [TOOL]}),
    "with_custom_calls": (
        custom_tools.with_custom_calls, lambda: {"form": None, "tools": [TOOL], "choice": "auto", "most": 1},
    ),
    "run_job": (
        run_here, lambda: {"source": "in", "output": "out", "options": JobOptions(regex="a"), "cluster": None,
                           "on_progress": None},
    ),
    "JobOptions": (
        JobOptions,
        lambda: {"model": "demo", "schema": None, "regex": "a", "grammar": None, "choices": None, "type": None,
                 "prompt": "x", "arguments": {}, "seed": 0, "arithmetic": "fast", "style": constrain.Style(),
                 "registry": None, "base_uri": "", "import_paths": (), "window": 1, "slots": 1, "sync": "end"},
    ),
    **{f"JobOptions {name}": (JobOptions, lambda name=name: {name: None}) for name in ("schema", "choices", "type")},
    "RayCluster": (
        RayCluster, lambda: {"workers": 1, "address": None, "cpus": 1.0, "gpus": 0.0, "chunk": 9},
    ),
    "LlamaConstraintProcessor": (
        LlamaConstraintProcessor, lambda: {"constraint": constraint(), "max_tokens": 9},
    ),
    "MlxConstraintProcessor": (MlxConstraintProcessor, lambda: {"constraint": constraint(), "max_tokens": 9}),
    "make_mlx_processors": (make_mlx_processors, lambda: {"constraints": [constraint()], "max_tokens": 9}),
}  # fmt: skip


def list_parameters(made: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a callable, but for those that take any others."""
    parameters = inspect.signature(made).parameters.values()
    return [one.name for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


@pytest.mark.parametrize("name", list(CALLS))
def test_a_right_call_is_right_and_has_every_parameter(name: str) -> None:
    call, right = CALLS[name]
    call(**right())
    if " " not in name and call is not run_here:
        assert set(list_parameters(call)) == set(right())


def test_everything_public_has_a_row() -> None:
    results = {JobReport}
    public = [
        run_job,
        create_app,
        *(getattr(custom_tools, one) for one in custom_tools.__all__),
        JobOptions,
        RayCluster,
    ]
    named = {one.__name__ for one in public if callable(one) and one not in results}
    assert named <= {name.split(" ")[0] for name in CALLS}
    assert not {name for name in dialogue.__all__ if "custom" in name} - set(CALLS)


def cases() -> Iterator[Any]:
    for name, (call, right) in CALLS.items():
        for argument in right():
            errors = (constrain.ConstrainError, TypeError, *([OSError] if name == "run_job" else []))
            yield pytest.param(call, right, argument, errors, id=f"{name}({argument}=)")


@pytest.mark.parametrize(("call", "right", "argument", "errors"), list(cases()))
def test_a_wrong_argument_is_a_type_error_or_a_constrain_error(
    call: Callable[..., Any], right: Callable[[], dict[str, Any]], argument: str, errors: tuple[type[Exception], ...]
) -> None:
    wrong = []
    for name, value in junk().items():
        try:
            call(**{**right(), argument: value})
        except errors as error:
            if len(str(error)) > 5000:
                wrong.append(f"{name}: a message of {len(str(error))} characters")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:100]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("keys", ["secret", ["secret"], (5,), ("",)])
def test_api_keys_are_a_tuple_of_texts(keys: Any) -> None:
    """A single text would be a key for each of its letters."""
    with pytest.raises((TypeError, constrain.ConstrainError), match="api_keys"):
        ServerSettings(api_keys=keys)
