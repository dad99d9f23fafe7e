"""`constrain explain`: where a keyword is enforced; what is allowed at a position, and why a token is rejected."""

from __future__ import annotations

from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..authoring.explanations import (
    ByteRefusal,
    Whereabouts,
    describe_expected,
    find_keyword_rows,
    join_words,
)
from ..authoring.token_refusals import TokenRefusal, explain_text
from ..base.errors import ConstrainError
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..frontends.json_schema.reading.keywords import KEYWORDS, list_annotations
from . import display
from .answer_explanation_output import check_page, explain_answer_file
from .common_arguments import SchemaOptions, takes_style
from .constraint_options import ChoiceOption, GrammarOption, RegexOption, SchemaOption, read_constraint
from .grammar_source import ImportOption
from .kernel_notice import load_kernels
from .model_options import PromptOption, read_prompt
from .source_options import JsonFlag, VocabularyOption, attribute_errors, bytes_of, check_stdin, vocabulary_of

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["explain_constraint"]

SAMPLE = 24
"""Number of allowed tokens that are listed."""

HOW = {
    "mask": "in the mask: the automaton itself",
    "counter": "by a counter in the frame of the array or string",
    "guard": "by a guard: the set of keys seen",
    "annotation": "asserts nothing",
    "structure": "where other schemas are kept",
    "refused": "refused, unless it excludes nothing: UnsupportedError",
}


@takes_style(Style())
def explain_constraint(
    keyword: Annotated[
        str | None, typer.Option(help="Report where and how this JSON Schema keyword is enforced.")
    ] = None,
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    prefix: Annotated[str, typer.Option(help="The text so far.")] = "",
    token: Annotated[str | None, typer.Option(help="Explain whether this text may come next.")] = None,
    token_id: Annotated[int | None, typer.Option(help="The same for a token id of the vocabulary.")] = None,
    vocabulary: VocabularyOption = None,
    answer: Annotated[
        str | None, typer.Option(metavar="FILE", help="Explain this answer of the model token by token; - for stdin.")
    ] = None,
    prompt: PromptOption = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="With --answer: write a page with plots.")] = None,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Explain where a keyword is enforced, what may follow a prefix and why a token may not, or an answer.

    constrain explain --keyword minItems

    constrain explain --schema S --prefix '{"age": 1' --token x --model demo

    constrain explain --schema S --answer FILE --prompt "Describe a person." --model demo --html page.html
    """
    if keyword is not None:
        raise typer.Exit(explain_keyword(keyword, as_json))
    check_page(html)
    check_stdin(schema=schema, grammar=grammar, answer=answer, prompt=prompt)
    given = read_constraint(schema, regex, grammar, choice, folders, options)
    load_kernels()
    if answer is not None:
        raise typer.Exit(explain_answer_file(answer, given, read_prompt(prompt), vocabulary or "demo", html, as_json))
    if html is not None or prompt is not None:
        raise typer.BadParameter("--html and --prompt need --answer.")
    with attribute_errors(given.name):
        constraint = compile(
            vocabulary_of(vocabulary), style=given.options.style, registry=given.options.registry, **given.arguments
        )
    token_text = None if token is None else bytes_of("--token", token)
    if token_id is not None:
        token_text = token_bytes(constraint, token_id)
    before = bytes_of("--prefix", prefix)
    raise typer.Exit(explain_position(constraint, before, token_text, vocabulary is not None, as_json))


def explain_keyword(keyword: str, as_json: bool) -> int:
    """Print the rows of a keyword and return the exit code."""

    rows = find_keyword_rows(keyword)
    if not rows and keyword in list_annotations():
        rows = [Whereabouts(keyword, "annotation", "", "", "-", "-", "so it is in the specification")]
    if not rows:
        suggestions = get_close_matches(keyword, [row.name for row in KEYWORDS], 1)
        raise ConstrainError(
            f"{keyword!r} is not an assertion keyword of JSON Schema",
            hint=f"Did you mean {suggestions[0]}?" if suggestions else "",
        )
    if as_json:
        display.as_json({"keyword": keyword, "rows": [asdict(row) for row in rows]})
        return display.FINE
    for row in rows:
        lines = [("keyword", row.keyword), ("enforced", HOW[row.how])]
        if row.since:
            lines += [("dialects", row.since if row.since == row.until else f"{row.since} to {row.until}")]
            lines += [("parsed by", row.parsed_by), ("enforced by", row.enforced_by)]
        display.print_facts(lines + ([("note", row.note)] if row.note else []))
    return display.FINE


def explain_position(constraint: Constraint, prefix: bytes, token: bytes | None, listed: bool, as_json: bool) -> int:
    """Print what is allowed after a prefix, and the verdict on one token; return the exit code."""
    matcher = constraint.matcher()
    answer: dict[str, Any] = {"prefix": prefix.decode("utf-8", "replace")}
    prefix_refusal = explain_text(matcher, prefix)
    if prefix_refusal is not None and prefix_refusal.place is not None:
        answer |= {"prefix_refused": asdict(prefix_refusal.place), "because": refusal_json(prefix_refusal)}
        if as_json:
            display.as_json(answer)
        else:
            display.print_answer(("the prefix itself is refused", "bold red"))
            show_refusal(prefix_refusal.place)
            if prefix_refusal.ablation is not None:
                display.print_answer(f"  because: {prefix_refusal.reason}")
        return display.NO
    matcher.advance_bytes(prefix)
    expected, forced, closing = describe_expected(matcher), matcher.forced(), matcher.shortest_completion()
    answer |= {
        "expected": expected, "may_end": matcher.is_complete, "forced": forced.decode("utf-8", "replace"),
        "next_bytes": sorted(matcher.next_bytes()),
        "shortest_completion": None if closing is None else closing.decode("utf-8", "replace"),
    }  # fmt: skip
    lines = [("next", join_words(expected)), ("may end here", "yes" if matcher.is_complete else "no")]
    if len(forced) > 1:
        lines.append(("forced", forced.decode("utf-8", "replace")))
    if closing:
        lines.append(("shortest end", closing.decode("utf-8", "replace")))
    if listed:
        tokens = next_tokens(matcher)
        some = {token: show_token_text(constraint, token) for token in spread_tokens(tokens)}
        answer |= {"tokens_allowed": len(tokens), "tokens": [{"id": i, "text": text} for i, text in some.items()]}
        share = f"{len(tokens):,} of {constraint.vocabulary.size:,}"
        lines.append(("tokens", f"{share}: " + "  ".join(some.values())))
    refused = None if token is None else explain_text(matcher, token)
    rejected = None if refused is None else refused.place
    if token is not None:
        answer["token"] = {
            "text": token.decode("utf-8", "replace"),
            "allowed": rejected is None,
            "refusal": None if rejected is None else asdict(rejected),
            "because": None if refused is None else refusal_json(refused),
        }
    if as_json:
        display.as_json(answer)
    else:
        display.print_facts(lines)
        if token is not None:
            show_verdict(token.decode("utf-8", "replace"), refused)
    return display.FINE if rejected is None else display.NO


def refusal_json(refusal: TokenRefusal) -> dict[str, Any]:
    """Return why a token is refused as JSON data."""
    return {"reason": refusal.reason, **({} if refusal.ablation is None else asdict(refusal.ablation))}


def show_verdict(token: str, refusal: TokenRefusal | None) -> None:
    """Print whether a token is allowed next, and why not."""
    display.print_answer()
    if refusal is None or refusal.place is None:
        display.print_answer((repr(token), "bold"), (" may come next", "green"))
        return
    display.print_answer((repr(token), "bold"), (" may not come next", "red"))
    show_refusal(refusal.place)
    if refusal.ablation is not None:
        display.print_answer(f"  because: {refusal.reason}")


def show_refusal(refusal: ByteRefusal) -> None:
    """Print where a text is rejected, and what was expected there."""
    display.print_answer(f"  {refusal.found} is refused at line {refusal.line}, column {refusal.column}")
    display.print_answer(f"    {refusal.excerpt}")
    display.print_answer("    ", " " * refusal.caret, ("^", "bold red"))
    display.print_answer(f"  expected: {join_words(refusal.expected)}")


def token_bytes(constraint: Constraint, token: int) -> bytes:
    """Return the bytes of a token. Raise ConstrainError if it has none."""
    vocabulary = constraint.vocabulary
    if not 0 <= token < vocabulary.size:
        raise ConstrainError(f"there is no token {token}; the vocabulary has {vocabulary.size:,} tokens")
    text = vocabulary.tokens[token]
    if not text:
        raise ConstrainError(f"token {token} is special or padding: it has no text and never occurs within one")
    return text


def next_tokens(matcher: Matcher) -> list[int]:
    """Return the tokens that the mask allows, end tokens included."""
    from ..sampling.core.masked_sampling import allowed_tokens

    return [int(token) for token in allowed_tokens(matcher.mask())]


def spread_tokens(tokens: list[int]) -> list[int]:
    """Return a sample of many tokens: evenly distributed over them, longer ones included."""
    if len(tokens) <= SAMPLE:
        return tokens
    return [tokens[k * len(tokens) // SAMPLE] for k in range(SAMPLE)]


def show_token_text(constraint: Constraint, token: int) -> str:
    """Return a readable form of a token."""
    text = constraint.vocabulary.tokens[token]
    if text is None:
        return "<end>" if token in constraint.vocabulary.eos_ids else "<special>"
    try:
        return repr(text.decode())
    except UnicodeDecodeError:
        return repr(text)
