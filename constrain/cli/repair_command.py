"""`constrain repair`: turn an invalid answer into a valid one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..base.errors import SourceError, shorten_text
from ..base.options import Style
from ..correction.text_repair import MOST_NODES, Repair
from ..generation.answer_repair import repair
from . import display
from .common_arguments import SchemaOptions, takes_style
from .constraint_options import ChoiceOption, GrammarOption, RegexOption, SchemaOption, read_constraint
from .generate_command import load_with_note
from .grammar_source import ImportOption
from .kernel_notice import load_kernels
from .source_options import JsonFlag, attribute_errors, check_stdin, read_bytes

__all__ = ["repair_answer"]

SHOWN = 12
"""Number of edits that are printed; --json has all of them."""


@takes_style(Style.any())
def repair_answer(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file that holds the answer; - for stdin.", show_default=False)
    ],
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    prompt: Annotated[str, typer.Option(help="What the text answers; shown to the model.")] = "",
    model: Annotated[
        str | None,
        typer.Option(help="A model that writes the answer again: demo, a folder or a hub id. Without: least edits."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens that the model writes.")] = 512,
    most_nodes: Annotated[
        int, typer.Option(min=1, help="Maximum number of nodes of the search for least edits.")
    ] = MOST_NODES,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Print the valid text that is nearest to an answer, or the answer itself if it is valid.

    The text is printed to stdout, the edits to stderr. A line break at the end of the file is not part of the answer.
    """
    check_stdin(FILE=file, schema=schema, grammar=grammar)
    given = read_constraint(schema, regex, grammar, choice, folders, options)
    text = read_answer(file)
    load_kernels()
    loaded = None if model is None else load_with_note(model)
    with attribute_errors(given.name), display.show_progress("repairing …"):
        found = repair(
            text, **given.arguments, style=given.options.style, registry=given.options.registry, model=loaded,
            prompt=prompt, max_tokens=max_tokens, most_nodes=most_nodes,
        )  # fmt: skip
    if as_json:
        display.as_json({
            "text": found.text, "value": found.value, "distance": found.distance, "at_least": found.at_least,
            "is_nearest": found.is_nearest, "edits": [asdict(one) for one in found.edits],
        })  # fmt: skip
        return
    print(found.text)
    print_edits(found)


def read_answer(file: str) -> str:
    """Return the text of a file without its last line break. Raise SourceError if it is not UTF-8."""
    name = "stdin" if file == "-" else file
    with attribute_errors(name):
        try:
            text = read_bytes(file).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"byte {error.start} is not valid UTF-8", hint="Give a text file in UTF-8.") from None
    return text.removesuffix("\n").removesuffix("\r")


def print_edits(found: Repair) -> None:
    """Print to stderr what was changed."""
    if not found.distance:
        display.print_note(("the answer is valid", "dim"))
        return
    for one in found.edits[:SHOWN]:
        display.print_note((shorten_text(one), "dim"))
    if len(found.edits) > SHOWN:
        display.print_note((f"... and {len(found.edits) - SHOWN:,} more edits", "dim"))
    nearest = "none is nearer" if found.is_nearest else f"no valid text is nearer than {found.at_least:,}"
    plural = "s" * (found.distance != 1)
    display.print_note((f"{found.distance:,} character{plural} changed · {nearest}", "dim"))
