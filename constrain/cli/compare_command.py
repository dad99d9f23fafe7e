"""`constrain compare`: two samplers under one constraint, two styles of one schema, or two languages."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
import typer

from ..authoring.comparisons import (
    LanguageComparison,
    build_language_page,
    build_sampler_page,
    compare_forms,
    compare_samplers,
    compare_schemas,
    describe_languages,
    describe_samplers,
)
from ..authoring.comparisons.comparison_report import SAMPLER_HEADERS, sampler_cells, share_rows
from ..base.errors import ConstrainError, check_count
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..forms import Form, grammar as form_of, json_schema, regex as regex_form
from ..sampling import SAMPLERS
from . import display
from .answer_explanation_output import check_page, write_page
from .common_arguments import SchemaOptions, takes_style, whitespace_of
from .constraint_options import ChoiceOption, GrammarOption, RegexOption, SchemaOption, read_constraint
from .generate_command import load_with_note
from .grammar_source import ImportOption, grammar_text, is_grammar, ready_name
from .kernel_notice import load_kernels
from .model_options import ModelOption, PromptOption, read_prompt
from .source_options import JsonFlag, Seed, attribute_errors, check_stdin, read_schema

__all__ = ["compare_pair"]

Kind = Literal["samplers", "styles", "schemas", "patterns", "texts"]
STYLES = {"default": Style(), "any": Style.any()}


@takes_style(Style())
def compare_pair(
    first: Annotated[str, typer.Argument(metavar="A", help="A sampler, a style, a schema or a grammar.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    kind: Annotated[
        Literal["samplers", "styles", "schemas", "patterns", "texts"] | None,
        typer.Option(
            "--as", help="What A and B are, if their form does not tell; texts: schemas compared by their spelling."
        ),
    ] = None,
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    prompt: PromptOption = None,
    model: ModelOption = "demo",
    n: Annotated[int, typer.Option("-n", min=1, help="Draws of each sampler; random texts of each language.")] = 200,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens of a text of a sampler.")] = 64,
    particles: Annotated[int, typer.Option(min=1, help="Number of particles, for smc and pimh.")] = 16,
    seed: Seed = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page with plots, too.")] = None,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Compare two samplers under a constraint, two styles of a schema, or the languages of two schemas or grammars.

    constrain compare masked exact --choice yes --choice no --prompt "Is it?"

    constrain compare old.json new.json

    constrain compare default whitespace=compact,key_order=any --schema S

    constrain compare '[a-z]+' '[a-f]+' --as patterns

    Of languages it says which accepts more, with a short text that one accepts and the other refuses. The exit code
    is 0 if they are equal (samplers: always), 1 if not.
    """
    rng = np.random.default_rng(None if seed is None else check_count("--seed", seed))
    check_page(html)
    check_stdin(A=first, B=second, schema=schema, grammar=grammar, prompt=prompt)
    chosen = kind or find_kind(first, second)
    load_kernels()
    if chosen == "samplers":
        given = read_constraint(schema, regex, grammar, choice, folders, options)
        loaded = load_with_note(model)
        with attribute_errors(given.name):
            constraint = compile(
                loaded.vocabulary, style=given.options.style, registry=given.options.registry, **given.arguments
            )
        extra = {name: {"particles": particles} for name in (first, second) if takes_particles(name)}
        with display.show_progress("drawing …"):
            lm = loaded.on(read_prompt(prompt))
            samplers = compare_samplers(
                lm, constraint, (first, second), n=n, rng=rng, max_tokens=max_tokens, options=extra
            )
        if html is not None:
            write_page(html, build_sampler_page(samplers))
        print_samplers(samplers, as_json)
        return
    comparison = compare_languages(chosen, first, second, schema, folders, options, n, rng)
    if html is not None:
        write_page(html, build_language_page(comparison))
    print_languages(comparison, as_json)
    raise typer.Exit(display.FINE if comparison.relation == "equal" else display.NO)


def takes_particles(name: str) -> bool:
    """Return whether a sampler of this name draws from populations."""
    return name in SAMPLERS and SAMPLERS[name].takes_particles


def find_kind(first: str, second: str) -> Kind:
    """Return what two arguments are by their form."""
    if first in SAMPLERS and second in SAMPLERS:
        return "samplers"
    if is_style(first) and is_style(second):
        return "styles"
    return "texts" if is_grammar(first) or is_grammar(second) else "schemas"


def is_style(given: str) -> bool:
    """Return whether an argument has the form of a style."""
    names = {one.name for one in fields(Style)}
    return given in STYLES or all(part.partition("=")[0] in names and "=" in part for part in given.split(","))


def read_style(given: str) -> Style:
    """Return the style of an argument such as default, any or whitespace=compact,digits=5. Raise BadParameter."""
    if given in STYLES:
        return STYLES[given]
    values: dict[str, Any] = {}
    for part in given.split(","):
        name, _, value = part.partition("=")
        if name == "whitespace":
            values[name] = whitespace_of(value)
        elif name == "digits":
            values[name] = None if value == "none" else int(value) if value.isascii() and value.isdigit() else value
        else:
            values[name] = value
    try:
        return replace(Style(), **values)
    except (ConstrainError, TypeError) as error:
        raise typer.BadParameter(f"{display.replace_controls(given)} is not a style: {error}") from None


def compare_languages(
    kind: Kind,
    first: str,
    second: str,
    schema: str | None,
    folders: list[str] | None,
    options: SchemaOptions,
    n: int,
    rng: np.random.Generator,
) -> LanguageComparison:
    """Compare what two arguments accept."""
    names = (first, second)
    if kind == "schemas":
        sources = [read_schema(one) for one in names]
        if sources[0].name == sources[1].name == "the schema":
            sources = [source._replace(name=name) for source, name in zip(sources, ("A", "B"))]
        with attribute_errors(f"{sources[0].name}, {sources[1].name}"):
            return compare_schemas(
                sources[0].text, sources[1].text, names=(sources[0].name, sources[1].name),
                registry=options.registry, samples=n, rng=rng,
            )  # fmt: skip
    if kind == "styles":
        if schema is None:
            raise typer.BadParameter("styles are compared for a schema: give --schema.")
        text = read_schema(schema).text
        forms = [json_schema(text, style=read_style(one), registry=options.registry) for one in names]
    elif kind == "patterns":
        forms = [regex_form(one) for one in names]
    else:
        forms = [read_form(one, folders, options) for one in names]
    with attribute_errors(f"{first}, {second}"):
        return compare_forms(forms[0], forms[1], names=names, samples=n, rng=rng)


def read_form(given: str, folders: list[str] | None, options: SchemaOptions) -> Form:
    """Return the form of a grammar or a schema."""
    if is_grammar(given):
        _, text = grammar_text(given)
        return form_of(given if ready_name(given) else text, import_paths=folders or ())
    return json_schema(read_schema(given).text, style=options.style, registry=options.registry)


def print_languages(comparison: LanguageComparison, as_json: bool) -> None:
    """Print what was found about two languages."""
    if as_json:
        document = {
            "names": list(comparison.names), "relation": comparison.relation, "forward": asdict(comparison.forward),
            "backward": asdict(comparison.backward),
        }  # fmt: skip
        display.as_json(document)
        return
    headline, *others = describe_languages(comparison)
    display.print_answer((headline, "bold"))
    for line in others:
        display.print_answer(f"  {line}")


def print_samplers(comparison: Any, as_json: bool) -> None:
    """Print the shares of the likeliest answers, and what the samplers cost."""
    if as_json:
        display.as_json(comparison.to_dict())
        return
    names = [row.sampler for row in comparison.rows]
    shares = [[text, *(f"{100 * share:.1f} %" for share in values)] for text, values in share_rows(comparison)]
    display.print_table(["answer", *names], shares)
    display.print_answer()
    display.print_table(SAMPLER_HEADERS, [sampler_cells(row) for row in comparison.rows])
    display.print_answer()
    for line in describe_samplers(comparison):
        display.print_answer(line)
