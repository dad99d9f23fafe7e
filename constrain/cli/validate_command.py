"""`constrain validate`: instances against a schema, byte by byte, with a second opinion."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..authoring.explanations import Refusal, first_refusal, joined
from ..base.options import Style
from . import display
from .common_arguments import Asked, takes_style
from .cross_check import Opinion, second_opinion, why_different
from .kernel_notice import ready
from .source_options import JsonFlag, SchemaArgument, about, read_bytes, read_schema

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["validate"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out for one file. difference: why jsonschema says otherwise, "" if it does not."""

    file: str
    refusal: Refusal | None
    opinion: Opinion
    difference: str

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "file": self.file,
            "valid": self.refusal is None,
            "refusal": None if self.refusal is None else asdict(self.refusal),
            "jsonschema": {"verdict": self.opinion.verdict, "message": self.opinion.message},
            "difference": self.difference or None,
        }


@takes_style(Style.any())
def validate(
    schema: SchemaArgument,
    instances: Annotated[list[str], typer.Argument(metavar="INSTANCE...", help="Files; - for stdin.")],
    asked: Asked = Asked(),
    as_json: JsonFlag = False,
) -> None:
    """Check instances byte by byte: the first illegal byte, and what could have stood there.

    All spellings that RFC 8259 allows are taken (--any is the default here), duplicate keys are not. The jsonschema
    package, if installed, is asked too, and where it says otherwise the reason is given.
    """
    from ..compilation.constraint_compiler import compile
    from ..vocabulary.vocabulary import Vocabulary

    source = read_schema(schema)
    asked = asked.relative_to(source)
    ready()
    with about(source.name):
        constraint = compile(Vocabulary.bytes(), schema=source.text, style=asked.style, registry=asked.registry)
    code, documents = display.FINE, []
    for name in instances:
        file = "stdin" if name == "-" else name
        try:
            verdict = judge(constraint, source.text, asked, file, read_bytes(name))
        except OSError as error:
            code = display.fail(error)
            documents.append({"file": file, "error": display.error_json(error)})
            continue
        documents.append(verdict.document())
        code = max(code, display.FINE if verdict.refusal is None else display.NO)
        if not as_json:
            tell(verdict)
    if as_json:
        display.as_json({"results": documents})
    raise typer.Exit(code)


def judge(constraint: Constraint, schema: str, asked: Asked, file: str, data: bytes) -> Verdict:
    """Our verdict and theirs on one instance."""
    refusal = first_refusal(constraint, data)
    opinion = second_opinion(schema, data, asked)
    ours = refusal is None
    differs = opinion.verdict != "none" and (opinion.verdict == "valid") != ours
    return Verdict(file, refusal, opinion, why_different(schema, data, asked, ours, opinion) if differs else "")


def tell(verdict: Verdict) -> None:
    """Prints a verdict."""
    refusal, opinion = verdict.refusal, verdict.opinion
    if refusal is None:
        display.say((verdict.file, "bold"), ": ", ("valid", "green"))
    else:
        display.say((f"{verdict.file}:{refusal.line}:{refusal.column}", "bold"), ": ", ("invalid", "red"))
        if refusal.excerpt:
            display.say(f"    {refusal.excerpt}")
            display.say("    ", " " * refusal.caret, ("^", "bold red"))
        display.say(f"  found {refusal.found}; expected {joined(refusal.expected)}")
    if opinion.verdict == "none":
        display.say((f"  no second opinion: {opinion.message}", "dim"))
    elif verdict.difference:
        said = opinion.verdict + (f" ({opinion.message})" if opinion.message else "")
        display.say((f"  jsonschema says {said}: ", "yellow"), verdict.difference)
    elif opinion.message:
        display.say((f"  jsonschema agrees: {opinion.message}", "dim"))
    else:
        display.say(("  jsonschema agrees", "dim"))
