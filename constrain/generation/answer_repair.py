"""`constrain.repair`: turn any text into a valid one, by least edits or with a local model.

A model that can only be reached as a black box answers in text that may be invalid. Without a model, the nearest valid
text is found by least edits (`correction.nearest_text`). With one, the text is a sketch in its prompt, and it writes
the answer again under the constraint (sketch-guided constrained decoding, Geng et al. 2024, section 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from os import PathLike
from typing import Any, cast

from ..base.errors import ArgumentError, ConstrainError, check_count, check_type
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..base.work import confine_budgets, spend_work, work_budget
from ..compilation.constraint_compiler import compile_grammar
from ..correction.edits import Edit, count_edits
from ..correction.text_repair import MOST_NODES, Repair, is_valid, repair_text
from ..engine.constraint import Constraint
from ..forms.form import Form
from ..vocabulary.vocabulary import Vocabulary
from .generation_arguments import ConstraintRequest, build_request
from .generation_result import Generation, refuse_values
from .model_preparation import compile_request
from .pipeline import generate

__all__ = ["SKETCH_PROMPT", "repair"]

PAIRS = 8
"""Pairs of equal characters that are compared in one unit of work."""
SKETCH_PROMPT = "{prompt}\nDraft of the answer:\n{text}\nThe same answer in the required form:\n"
"""Default prompt of a model that repairs a text: `prompt` is what the text answered, `text` the text."""


def repair(
    text: str,
    constraint: Constraint | Form | None = None,
    *,
    schema: Any = None,
    regex: str | None = None,
    grammar: Any = None,
    choices: Sequence[str] | None = None,
    type: Any = None,
    style: Style = Style.any(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    import_paths: Sequence[str | PathLike[str]] = (),
    limits: Limits = Limits(),
    model: Any = None,
    tokenizer: Any = None,
    prompt: str = "",
    template: str = SKETCH_PROMPT,
    max_tokens: int = 512,
    most_nodes: int = MOST_NODES,
) -> Repair:
    """Return a valid text in place of a text that may be invalid. A valid text is returned unchanged.

    Parameters
    ----------
    text : str
        The text to repair, such as the answer of a model behind an API.
    constraint : Constraint or Form, optional
        What the text must satisfy; or one of schema, regex, grammar, choices and type, as in `generate`.
    schema, regex, grammar, choices, type, registry, base_uri, import_paths
        As in `generate`.
    limits : Limits
        As in `generate`. `Limits.work` also bounds the search for the nearest text.
    style : Style
        How JSON may be written; by default in any way, so that layout is not an error.
    model, tokenizer : optional
        A local model, as in `generate`. It is shown the text and writes the answer again under the constraint, choosing
        the likeliest token at every step. Without a model, the fewest characters are inserted, deleted and replaced.
    prompt : str
        What the text answered; shown to the model.
    template : str
        Prompt of the model, with the fields `prompt` and `text`.
    max_tokens : int
        Maximum number of tokens that the model writes.
    most_nodes : int
        Maximum number of nodes of the search for the nearest text. If they, or the units of `Limits.work`, do not
        suffice, the text found is valid, and `Repair.at_least` is below `Repair.distance`.

    Returns
    -------
    Repair

    Raises
    ------
    ConstrainError
        If the constraint is invalid; errors of `compile`, and of `generate` with a model.
    LimitError
        If the text is so long, or so far from valid ones, that `Limits.work` does not suffice to find any.
    ValueRefused
        If a validator of the type rejects the repaired text.
    """
    check_text(text)
    most_nodes, max_tokens = check_count("most_nodes", most_nodes, 1), check_count("max_tokens", max_tokens, 1)
    sketch = fill_template(template, prompt, text)
    request = request_constraint(constraint, build_request, (schema, regex, grammar, choices, type, import_paths))
    references = References(registry, base_uri)
    if isinstance(constraint, Constraint):
        over_bytes = compile_grammar(constraint.grammar, Vocabulary.bytes(), limits)
    else:
        over_bytes = compile_request(Vocabulary.bytes(), request, style, references, limits)
    if model is None or is_valid(over_bytes, text):
        found = repair_text(text, over_bytes, most_nodes, limits.work)
    else:
        written = generate(
            model, sketch, tokenizer=tokenizer, style=style, registry=registry,
            base_uri=base_uri, limits=limits, max_tokens=max_tokens, temperature=0, **request.given,
        )  # fmt: skip
        found = _compare_texts(text, cast(Generation[Any], written).text, limits)
    with refuse_values(found.text, "State the validator's condition in the schema."):
        return replace(found, value=request.value(found.text))


@confine_budgets
def _compare_texts(text: str, written: str, limits: Limits) -> Repair:
    """Do `compare_texts` within `Limits.work`."""
    with work_budget(limits.work):
        return compare_texts(text, written)


def check_text(text: str) -> None:
    """Raise TypeError or ArgumentError unless this is a text that UTF-8 can encode."""
    check_type("text", text, str, "give a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"the text contains half of a surrogate pair at character {error.start}, which is not a character"
        ) from None


def fill_template(template: str, prompt: str, text: str) -> str:
    """Return the prompt of a model that repairs a text."""
    check_type("template", template, str, "give a text with the fields {prompt} and {text}")
    check_type("prompt", prompt, str, "give a text")
    try:
        return template.format(prompt=prompt, text=text)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ArgumentError(
            f"template cannot be filled in: {type(error).__name__}: {error}",
            hint="It is a text with the fields {prompt} and {text}; other braces are doubled.",
        ) from None


def request_constraint(
    constraint: object, build: Callable[..., ConstraintRequest], arguments: Sequence[Any]
) -> ConstraintRequest:
    """Return the requested constraint: the positional one, or the one that the keywords describe."""
    if constraint is None:
        return build(*arguments)
    if any(argument is not None for argument in arguments[:-1]):
        raise ConstrainError("got a constraint and another one by keyword: give exactly one")
    check_type("constraint", constraint, (Constraint, Form), "give a Constraint, a Form, or schema=, regex= ...")
    return ConstraintRequest(grammar=constraint.grammar if isinstance(constraint, Constraint) else constraint)


def compare_texts(text: str, written: str) -> Repair:
    """Return the Repair in which a model wrote `written` in place of an invalid text.

    Raises LimitError if the texts are too long to be compared: pairs of equal characters are counted.
    """
    there = Counter(written)
    spend_work(sum(there[one] for one in text) // PAIRS, "the comparison of two texts")
    pieces = SequenceMatcher(None, text, written, autojunk=False).get_opcodes()
    edits = tuple(Edit(i, text[i:j], written[k:m]) for kind, i, j, k, m in pieces if kind != "equal")
    return Repair(written, text, count_edits(text, written), 1, edits)
