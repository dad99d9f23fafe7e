"""`constrain score`: the log-probability of a text under a model, token by token."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..generation.text_probability import score
from ..scoring.text_score import TextScore
from . import display
from .common_arguments import SchemaOptions, takes_style
from .constraint_options import ChoiceOption, GrammarOption, RegexOption, SchemaOption, read_constraint
from .generate_command import load_with_note
from .grammar_source import ImportOption
from .kernel_notice import load_kernels
from .model_options import ModelOption, PromptOption, read_prompt
from .source_options import JsonFlag, Seed, attribute_errors, check_stdin

__all__ = ["score_answer"]


@takes_style(Style())
def score_answer(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The answer to score.", show_default=False)],
    prompt: PromptOption = None,
    model: ModelOption = "demo",
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    spellings: Annotated[
        Literal["canonical", "all", "sampled"],
        typer.Option(help="canonical: the tokenizer's tokens. all: all tokenisations. sampled: an estimate of all."),
    ] = "canonical",
    ends: Annotated[
        Literal["token", "prefix"], typer.Option(help="token: the answer is the text. prefix: it begins with the text.")
    ] = "token",
    tolerance: Annotated[
        float, typer.Option(min=0, help="For all: the largest share of the probability that is not summed up.")
    ] = 1e-3,
    max_rows: Annotated[int, typer.Option(min=1, help="For all: stop after so many positions of the model.")] = 4096,
    n: Annotated[int, typer.Option("-n", min=2, help="For sampled: the number of draws.")] = 32,
    seed: Seed = None,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Print the log-probability of a text as the answer to a prompt, in nats, and that of each token.

    With --schema, --regex, --grammar or --choice, also under masked sampling. A text that the constraint refuses has
    exit code 1.
    """
    check_stdin(schema=schema, grammar=grammar, prompt=prompt)
    is_constrained = schema is not None or regex is not None or grammar is not None or bool(choice)
    given = read_constraint(schema, regex, grammar, choice, folders, options) if is_constrained else None
    prompted = read_prompt(prompt)
    load_kernels()
    loaded = load_with_note(model)
    constraint = None
    if given is not None:
        with attribute_errors(given.name):
            constraint = compile(
                loaded.vocabulary, **given.arguments, style=given.options.style, registry=given.options.registry
            )
    with display.show_progress("scoring …"):
        found = score(
            loaded, prompted, text, constraint, spellings=spellings, ends=ends, tolerance=tolerance,
            max_rows=max_rows, n=n, seed=seed,
        )  # fmt: skip
    if as_json:
        display.as_json(score_json(found))
        return
    print_score(found)


def score_json(found: TextScore) -> dict[str, object]:
    """Return a TextScore as JSON data."""
    tokens = [
        {
            "token": one.token, "text": one.text, "offset": one.offset, "logprob": one.logprob,
            "masked_logprob": one.masked_logprob, "is_forced": one.is_forced,
        }
        for one in found.tokens
    ]  # fmt: skip
    return {
        "text": found.text, "logprob": found.logprob, "bounds": found.bounds, "error": found.error,
        "masked_logprob": found.masked_logprob, "log_weight": found.log_weight, "tokens": tokens,
        "model_calls": found.model_calls, "rows": found.rows,
    }  # fmt: skip


def print_score(found: TextScore) -> None:
    """Print the tokens of a text as a table, and the text's log-probability."""
    is_masked = found.log_weight is not None
    rows = []
    for one in found.tokens:
        row = [repr(one.text) if one.text else "end", f"{one.logprob:.4f}"]
        if is_masked:
            row += [f"{one.masked_logprob:.4f}", "forced" if one.is_forced else ""]
        rows.append(row)
    display.print_table(("token", "logprob", *(("masked", "") if is_masked else ())), rows)
    facts = [f"log-probability {found.logprob:.4f}"]
    if found.error:
        facts[0] += f" ± {found.error:.4f}"
    if found.masked_logprob is not None:
        facts.append(f"under masked sampling {found.masked_logprob:.4f}")
    display.print_answer(" · ".join(facts))
    low, high = found.bounds
    summed = f"all tokenisations together: {low:.4f} to {high:.4f} · " if high < 0 else ""
    display.print_note((f"{summed}{found.rows:,} positions of the model", "dim"))
