"""`constrain validate`: which keywords an instance violates, the first illegal byte, and what jsonschema says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from ..authoring.explanations import ByteRefusal, first_refusal, join_words
from ..base.errors import LimitError, UnsupportedError, locate_position
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..validation import InstanceValidator, Violation
from ..vocabulary.vocabulary import Vocabulary
from . import display
from .common_arguments import SchemaOptions, takes_style
from .cross_check import NOT_INSTALLED, CrossCheck, explain_difference, validate_independently
from .kernel_notice import load_kernels
from .source_options import JsonFlag, SchemaArgument, attribute_errors, check_stdin, read_bytes, read_schema

__all__ = ["validate_instances"]


MOST_PRINTED = 20
"""Maximum number of violations that are printed; of more, the last line says how many there are."""


@dataclass(frozen=True, slots=True)
class SchemaJudges:
    """A schema, ready to judge instances: by bytes and by values. constraint: None if the schema has no automaton."""

    source: str
    options: SchemaOptions
    constraint: Constraint | None
    validator: InstanceValidator
    without: str = ""
    """Why there is no automaton."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for one file. difference: why jsonschema disagrees, "" if it agrees."""

    file: str
    is_valid: bool
    refusal: ByteRefusal | None
    violations: tuple[Violation, ...]
    theirs: CrossCheck
    difference: str

    def document(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {
            "file": self.file,
            "valid": self.is_valid,
            "violations": [asdict(one) for one in self.violations],
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
    """Validate instances; report each violated keyword with its place, and what could have stood there.

    All spellings that RFC 8259 allows are accepted (--any is the default here), duplicate keys are not. The result is
    compared with that of the jsonschema package, if installed, and any difference is explained.
    """

    check_stdin(SCHEMA=schema, INSTANCE=instances)
    source = read_schema(schema)
    options = options.relative_to(source)
    load_kernels()
    with attribute_errors(source.name):
        judges = open_judges(source.text, options)
    if judges.without:
        display.print_note(f"values are judged, and not their spellings: {judges.without}")
    code, documents = display.FINE, []
    for name in instances:
        file = "stdin" if name == "-" else name
        try:
            data = read_bytes(name)
            verdict = validate_instance(judges, file, data)
        except (OSError, LimitError) as error:
            code = max(code, display.print_error(error, file if isinstance(error, LimitError) else ""))
            documents.append({"file": file, "error": display.error_json(error)})
            continue
        documents.append(verdict.document())
        code = max(code, display.FINE if verdict.is_valid else display.NO)
        if not as_json:
            print_verdict(verdict, data)
    if as_json:
        display.as_json({"results": documents})
    raise typer.Exit(code)


def open_judges(schema: str, options: SchemaOptions) -> SchemaJudges:
    """Return the judges of a schema. A schema that constrain cannot enforce in a mask may still judge values."""
    validator = InstanceValidator(schema, registry=options.registry, formats=options.style.formats)
    try:
        constraint = compile(Vocabulary.bytes(), schema=schema, style=options.style, registry=options.registry)
    except (UnsupportedError, LimitError) as error:
        return SchemaJudges(schema, options, None, validator, error.cause)
    return SchemaJudges(schema, options, constraint, validator)


def validate_instance(judges: SchemaJudges, file: str, data: bytes) -> Judgement:
    """Return the verdicts of constrain and jsonschema on one instance.

    Raise LimitError if neither the bytes nor the value can be judged.
    """
    refusal = None if judges.constraint is None else first_refusal(judges.constraint, data)
    violations: tuple[Violation, ...] = ()
    if refusal is not None or judges.constraint is None:
        try:
            violations = judges.validator.check_text(data)
        except LimitError:  # too deep or too large for a tree: the automaton has judged it
            if judges.constraint is None:
                raise
    valid = refusal is None and not violations
    theirs = validate_independently(judges.source, data, judges.options)
    differs = theirs.verdict != "none" and (theirs.verdict == "valid") != valid
    why = explain_difference(judges.source, data, judges.options, valid, theirs) if differs else ""
    return Judgement(file, valid, refusal, violations, theirs, why)


def print_verdict(verdict: Judgement, data: bytes) -> None:
    """Print a verdict: what is violated, then the first illegal byte, then what jsonschema says."""
    refusal, theirs = verdict.refusal, verdict.theirs
    # Of a text that is not JSON, the automaton says more: what it would be with.
    violations = [one for one in verdict.violations if refusal is None or not one.message.startswith("not JSON")]
    if verdict.is_valid:
        display.print_answer((verdict.file, "bold"), ": ", ("valid", "green"))
    elif violations:
        print_violations(verdict.file, violations, data.decode("utf-8", "replace"))
        if refusal is not None:
            expected = join_words(refusal.expected)
            display.print_answer(f"  at {refusal.line}:{refusal.column} could stand {expected}")
    elif refusal is not None:
        display.print_answer((f"{verdict.file}:{refusal.line}:{refusal.column}", "bold"), ": ", ("invalid", "red"))
        if refusal.excerpt:
            print_caret(refusal.excerpt, refusal.caret)
        display.print_answer(f"  found {refusal.found}; expected {join_words(refusal.expected)}")
    if theirs.message == NOT_INSTALLED:
        return
    if theirs.verdict == "none":
        display.print_answer((f"  not cross-checked: {theirs.message}", "dim"))
    elif verdict.difference:
        outcome = theirs.verdict + (f" ({theirs.message})" if theirs.message else "")
        display.print_answer((f"  jsonschema says {outcome}: ", "yellow"), verdict.difference)
    elif theirs.message:
        display.print_answer((f"  jsonschema agrees: {theirs.message}", "dim"))
    else:
        display.print_answer(("  jsonschema agrees", "dim"))


def print_violations(file: str, violations: Sequence[Violation], text: str) -> None:
    """Print violations, each with its line and a caret."""
    lines = text.split("\n")
    for violation in violations[:MOST_PRINTED]:
        line, column = violation.line or 1, violation.column or 1
        place = f"{violation.pointer}: " if violation.pointer else ""
        display.print_answer(
            (f"{file}:{line}:{column}", "bold"), ": ", ("invalid", "red"), f": {place}{violation.message}"
        )
        excerpt = locate_position(lines[line - 1], column - 1)
        if excerpt[2]:
            print_caret(excerpt[2], excerpt[3])
    if len(violations) > MOST_PRINTED:
        display.print_answer(f"  and {len(violations) - MOST_PRINTED:,} more: --json lists all")


def print_caret(excerpt: str, caret: int) -> None:
    """Print a line of the instance with a caret below."""
    display.print_answer(f"    {excerpt}")
    display.print_answer("    ", " " * caret, ("^", "bold red"))
