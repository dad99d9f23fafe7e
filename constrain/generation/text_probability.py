"""`score`: the log-probability of a text after a prompt, and what a constraint does to it, token by token."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.errors import UnsupportedError, check_choice, check_count, check_type, describe_value
from ..engine.constraint import Constraint
from ..forms.form import Form
from ..integrations.transformers_models import Prompt
from ..scoring.option_trie import Ends
from ..scoring.text_score import ScoredSpellings, TextScore, score_text
from ..scoring.token_scores import check_acceptance
from .generation_arguments import ConstraintRequest
from .model_preparation import prompt_model
from .option_probabilities import check_encodable, check_tolerance

__all__ = ["score"]


def score(
    model: Any,
    prompt: Prompt = None,
    text: str = "",
    constraint: Constraint | Form | None = None,
    *,
    tokenizer: Any = None,
    spellings: ScoredSpellings = "canonical",
    ends: Ends = "token",
    tolerance: float = 1e-3,
    max_rows: int = 4096,
    n: int = 32,
    seed: int | None = None,
) -> TextScore:
    """Return the log-probability of a text as the answer to a prompt.

    Parameters
    ----------
    model, prompt, tokenizer
        As in `generate`. The embedded model is shown the schema, pattern or choices of the constraint, as there.
    text : str
        The answer.
    constraint : Constraint or Form, optional
        What the text satisfies. The result then also has its probability under masked sampling, and the mass that the
        mask leaves at every token.
    spellings : {"canonical", "all", "sampled"}
        "canonical": the log-probability of the tokenisation that the tokenizer chooses. "all": of the text, the sum
        over its tokenisations, within `tolerance`. "sampled": an unbiased estimate of this sum, for long texts.
    ends : {"token", "prefix"}
        "token": that the model writes the text and ends. "prefix": that its answer begins with the text.
    tolerance, max_rows
        For "all", as in `choose`; `TextScore.bounds` holds in any case.
    n, seed
        For "sampled": the number of draws, at least 2, and the seed.

    Returns
    -------
    TextScore

    Raises
    ------
    TokenRefused
        If the constraint refuses the text; the message shows where.
    LimitError
        If the text does not fit into the positions that the model has left, or has more than 32,768 tokens.
    """
    check_type("text", text, str, "give the text to score")
    check_encodable("text", text)
    check_choice("spellings", spellings, ("canonical", "all", "sampled"))
    check_choice("ends", ends, ("token", "prefix"))
    tolerance, max_rows = check_tolerance(tolerance), check_count("max_rows", max_rows, 1)
    n, seed = check_count("n", n, 2), None if seed is None else check_count("seed", seed)
    if constraint is not None and not isinstance(constraint, (Constraint, Form)):
        raise TypeError(f"constraint is {describe_value(constraint)}: give what constrain.compile returned, or a Form")
    if spellings == "sampled" and ends == "prefix":
        raise UnsupportedError('spellings="sampled" needs ends="token"', hint='Give spellings="all".')
    lm, vocabulary = prompt_model(model, tokenizer, prompt, show_constraint(constraint))
    compiled = constraint.compile(vocabulary) if isinstance(constraint, Form) else constraint
    if compiled is not None:
        check_acceptance(compiled, vocabulary, text.encode(), ends)
    return score_text(
        lm, vocabulary, text, compiled, spellings=spellings, ends=ends,
        tolerance=tolerance, max_rows=max_rows, n=n, rng=np.random.default_rng(seed),
    )  # fmt: skip


def show_constraint(constraint: Constraint | Form | None) -> ConstraintRequest:
    """Return the request from which a prompt is composed that shows the constraint."""
    source = (constraint.source if isinstance(constraint, Constraint) else None) or {}
    shown = {name: source[name] for name in ("schema", "regex", "choices") if source.get(name) is not None}
    return ConstraintRequest(**dict(list(shown.items())[:1])) if shown else ConstraintRequest(grammar="")
