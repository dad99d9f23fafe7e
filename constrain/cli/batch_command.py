"""`constrain batch`: an answer for every row of a JSON Lines file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..base.errors import ArgumentError
from ..base.options import Style
from ..jobs import JobOptions, JobReport, RayCluster, run_job
from . import display
from .common_arguments import SchemaOptions, takes_style
from .constraint_options import ChoiceOption, GrammarOption, RegexOption, SchemaOption
from .grammar_source import ImportOption, grammar_text, ready_name
from .kernel_notice import load_kernels
from .model_options import ModelOption
from .source_options import JsonFlag, attribute_errors, read_schema, silence_transformers

__all__ = ["run_batch"]


@takes_style(Style())
def run_batch(
    source: Annotated[str, typer.Argument(metavar="IN", help="A JSON Lines file of rows.", show_default=False)],
    output: Annotated[
        str, typer.Argument(metavar="OUT", help="The file to write, or to go on with.", show_default=False)
    ],
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    type_name: Annotated[
        str | None, typer.Option("--type", metavar="MODULE:NAME", help="A Python type that can be imported.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="The prompt of rows without one.")] = None,
    model: ModelOption = "demo",
    n: Annotated[int | None, typer.Option("-n", min=1, help="Texts for each row, as a list of outputs.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the job: the seed of a row follows from it and its id.")] = 0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens of a text.")] = 512,
    temperature: Annotated[float, typer.Option(min=0, help="0 selects the likeliest token.")] = 1.0,
    top_k: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Use only the K likeliest of the allowed tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(max=1, metavar="P", help="Use only the likeliest tokens with a total probability of P."),
    ] = None,
    chat: Annotated[
        Literal["plain", "template"], typer.Option(help="template: render prompts by the chat template of the model.")
    ] = "plain",
    arithmetic: Annotated[
        Literal["reproducible", "fast"],
        typer.Option(help="reproducible: float64, so that the output does not depend on batches. fast: the model's."),
    ] = "reproducible",
    window: Annotated[int, typer.Option(min=1, help="Rows that are read ahead of the first unfinished one.")] = 128,
    slots: Annotated[int, typer.Option(min=1, help="Maximum number of texts in a batch of the model.")] = 32,
    sync: Annotated[
        Literal["row", "second", "end"], typer.Option(help="When finished rows are forced to the disk.")
    ] = "second",
    engine: Annotated[Literal["local", "ray"], typer.Option(help="local: this process. ray: a Ray cluster.")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="For ray: the number of workers.")] = 2,
    address: Annotated[
        str | None, typer.Option(help="For ray: the address of a cluster; by default one is started here.")
    ] = None,
    gpus: Annotated[float, typer.Option(min=0, help="For ray: GPUs of each worker.")] = 0.0,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Write an answer for every row of a JSON Lines file. After an interruption, the same command goes on.

    A row has a "prompt" or "messages", and optionally "id", a constraint of its own ("schema", "regex", "grammar" or
    "choices"), "max_tokens" and others. A row that cannot be answered has an "error" in OUT, and exit code 1.
    """
    given: dict[str, Any] = {"regex": regex, "choices": choice or None, "type": type_name}
    name = "the options"
    if schema is not None:
        read = read_schema(schema)
        name, given["schema"], options = read.name, read.text, options.relative_to(read)
    if grammar is not None:
        name, text = grammar_text(grammar)
        given["grammar"] = grammar if ready_name(grammar) else text
    arguments = {
        "max_tokens": max_tokens, "temperature": temperature, "n": n, "top_k": top_k, "top_p": top_p, "chat": chat,
    }  # fmt: skip
    load_kernels()
    silence_transformers()
    registry = options.registry
    with attribute_errors(name):
        job = JobOptions(
            model=model, prompt=prompt, seed=seed, arithmetic=arithmetic, style=options.style, registry=registry,
            base_uri=registry.base_uri, import_paths=tuple(folders or ()), window=window, slots=slots, sync=sync,
            arguments={key: value for key, value in arguments.items() if value is not None}, **given,
        )  # fmt: skip
    if source == output:
        raise ArgumentError("the input and the output are the same file")
    cluster = RayCluster(workers, address, gpus=gpus) if engine == "ray" else None
    # Ray prints notices to stdout, such as of a killed worker. Stdout is for the report.
    with redirect_stdout(sys.stderr), show_rows() as tell:
        try:
            report = run_job(source, output, job, cluster=cluster, on_progress=tell)
        except KeyboardInterrupt:
            interrupted = f"finished rows are kept in {output}; the same command goes on from there"
            display.print_note(("interrupted: ", "bold yellow"), interrupted)
            raise typer.Exit(display.INTERRUPTED) from None
    if as_json:
        speeds = {"rows_per_second": report.rows_per_second, "tokens_per_second": report.tokens_per_second}
        display.as_json({**asdict(report), **speeds})
    else:
        print_report(report)
    if report.errors:
        raise typer.Exit(display.NO)


@contextmanager
def show_rows() -> Iterator[Callable[[JobReport], None]]:
    """Yield a function that shows how far a job is, as a bar on a terminal."""
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    columns = (
        BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[speed]:.1f} rows/s"),
        TextColumn("{task.fields[errors]} errors"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=display.message_console()) as progress:
        task = progress.add_task("rows", total=None, speed=0.0, errors=0)
        yield lambda report: progress.update(
            task, total=report.total, completed=report.rows, speed=report.rows_per_second, errors=report.errors
        )


def print_report(report: JobReport) -> None:
    """Print the statistics of a job to stderr."""
    resumed = f", {report.resumed:,} of them by an earlier run" if report.resumed else ""
    display.print_note(f"{report.rows:,} rows{resumed}: {report.valid:,} valid, {report.errors:,} errors")
    display.print_note((
        f"{report.tokens:,} tokens in {report.seconds:.1f} s · {report.rows_per_second:.1f} rows/s · "
        f"{report.tokens_per_second:.0f} tokens/s · compiling {report.compile_seconds:.2f} s, masks "
        f"{report.mask_seconds:.2f} s, model {report.model_seconds:.2f} s", "dim",
    ))  # fmt: skip
