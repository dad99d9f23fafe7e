"""`constrain validate`: validate instances byte by byte, and cross-check with the `jsonschema` package."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from ..authoring.explanations import ByteRefusal, first_refusal, join_words
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..vocabulary.vocabulary import Vocabulary
from . import display
from .common_arguments import SchemaOptions, takes_style
from .cross_check import CrossCheck, explain_difference, validate_independently
from .kernel_notice import load_kernels
from .source_options import JsonFlag, SchemaArgument, attribute_errors, read_bytes, read_schema

__all__ = ["validate_instances"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for one file. difference: why jsonschema disagrees, "" if it agrees."""

    file: str
    refusal: ByteRefusal | None
    theirs: CrossCheck
    difference: str

    def document(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {
            "file": self.file,
            "valid": self.refusal is None,
            "refusal": None if self.refusal is None else asdict(self.refusal),
            "jsonschema": {"verdict": self.theirs.verdict, "message": self.theirs.message},
            "difference": self.difference or None,
        }


@takes_style(Style.any())
def validate_instances(
    schema: SchemaArgument,
    instances: Annotated[
        list[str], typer.Argument(metavar="INSTANCE...", help="Files with one instance each; - for stdin.")
    ],
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Validate instances byte by byte; report the first illegal byte, and what was expected there.

    All spellings that RFC 8259 allows are accepted (--any is the default here), duplicate keys are not. The result is
    compared with that of the jsonschema package, if installed, and any difference is explained.
    """

    source = read_schema(schema)
    options = options.relative_to(source)
    load_kernels()
    with attribute_errors(source.name):
        constraint = compile(Vocabulary.bytes(), schema=source.text, style=options.style, registry=options.registry)
    code, documents = display.FINE, []
    for name in instances:
        file = "stdin" if name == "-" else name
        try:
            verdict = validate_instance(constraint, source.text, options, file, read_bytes(name))
        except OSError as error:
            code = display.print_error(error)
            documents.append({"file": file, "error": display.error_json(error)})
            continue
        documents.append(verdict.document())
        code = max(code, display.FINE if verdict.refusal is None else display.NO)
        if not as_json:
            print_verdict(verdict)
    if as_json:
        display.as_json({"results": documents})
    raise typer.Exit(code)


def validate_instance(constraint: Constraint, schema: str, options: SchemaOptions, file: str, data: bytes) -> Judgement:
    """Return the verdicts of constrain and jsonschema on one instance."""
    refusal = first_refusal(constraint, data)
    theirs = validate_independently(schema, data, options)
    ours = refusal is None
    differs = theirs.verdict != "none" and (theirs.verdict == "valid") != ours
    return Judgement(file, refusal, theirs, explain_difference(schema, data, options, ours, theirs) if differs else "")


def print_verdict(verdict: Judgement) -> None:
    """Print a verdict."""
    refusal, theirs = verdict.refusal, verdict.theirs
    if refusal is None:
        display.print_answer((verdict.file, "bold"), ": ", ("valid", "green"))
    else:
        display.print_answer((f"{verdict.file}:{refusal.line}:{refusal.column}", "bold"), ": ", ("invalid", "red"))
        if refusal.excerpt:
            display.print_answer(f"    {refusal.excerpt}")
            display.print_answer("    ", " " * refusal.caret, ("^", "bold red"))
        display.print_answer(f"  found {refusal.found}; expected {join_words(refusal.expected)}")
    if theirs.verdict == "none":
        display.print_answer((f"  not cross-checked: {theirs.message}", "dim"))
    elif verdict.difference:
        outcome = theirs.verdict + (f" ({theirs.message})" if theirs.message else "")
        display.print_answer((f"  jsonschema says {outcome}: ", "yellow"), verdict.difference)
    elif theirs.message:
        display.print_answer((f"  jsonschema agrees: {theirs.message}", "dim"))
    else:
        display.print_answer(("  jsonschema agrees", "dim"))
