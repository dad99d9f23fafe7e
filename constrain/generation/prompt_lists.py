"""Lists of prompts and of constraints: which constraint belongs to which prompt.

One prompt is a text, a list of messages or a list of token ids; a list of any of these is several prompts. A list of
constraints has one for each prompt, None for no constraint; one constraint is that of all prompts. One prompt with a
list of constraints is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Union

from ..base.errors import ArgumentError, describe_value
from ..integrations.transformers_models import Prompt
from .generation_arguments import ConstraintRequest, build_request

__all__ = ["Prompts", "is_constraint_list", "is_prompt_list", "pair_prompts"]

Prompts = Union[Prompt, Sequence[Prompt]]


def is_prompt_list(prompts: object) -> bool:
    """Return whether an argument is a list of prompts rather than one prompt.

    Raise TypeError, which names the index, if some of its items are prompts and others are not.
    """
    if not isinstance(prompts, (list, tuple)) or not prompts:
        return False
    wrong = [
        place for place, one in enumerate(prompts) if not (one is None or isinstance(one, str) or is_one_list(one))
    ]
    if wrong and any(isinstance(one, str) for one in prompts):
        raise TypeError(
            f"prompts[{wrong[0]}] is {describe_value(prompts[wrong[0]])}: "
            "give a text, a list of messages, a list of token ids, or None"
        )
    return not wrong


def is_one_list(prompt: object) -> bool:
    """Return whether a value is a list of token ids or of messages."""
    return isinstance(prompt, (list, tuple)) and all(isinstance(part, (int, Mapping)) for part in prompt)


def is_constraint_list(name: str, value: object) -> bool:
    """Return whether an argument of this name holds one constraint for each prompt."""
    if not isinstance(value, (list, tuple)):
        return False
    return name != "choices" or any(one is None or isinstance(one, (list, tuple)) for one in value)


def pair_prompts(
    prompts: Prompts, given: Mapping[str, Any], import_paths: Sequence[str | PathLike[str]] = ()
) -> list[tuple[Prompt, ConstraintRequest | None]]:
    """Return each prompt with its constraint.

    Parameters
    ----------
    prompts : prompt or list of prompts
    given : mapping
        The arguments schema, regex, grammar, choices and type; each one constraint, a list of them, or None. Without
        any, all prompts are unconstrained.
    import_paths : sequence of path
        Folders that Lark grammars import from.

    Raises
    ------
    ArgumentError
        If lists differ in length.
    """
    listed: list[Any] = list(prompts) if is_prompt_list(prompts) else [prompts]  # type: ignore[arg-type]
    requests = list_requests(given, import_paths)
    if len(requests) == 1:
        requests *= len(listed)
    if len(listed) == 1:
        listed *= len(requests)
    if len(listed) != len(requests):
        raise ArgumentError(
            f"there are {len(requests)} constraints for {len(listed)} prompts",
            hint="Give one constraint, or one for each prompt, None for no constraint.",
        )
    return list(zip(listed, requests))


def list_requests(
    given: Mapping[str, Any], import_paths: Sequence[str | PathLike[str]]
) -> list[ConstraintRequest | None]:
    """Return the constraints of a call, one or as many as the lists among them have."""
    given = {name: value for name, value in given.items() if value is not None}
    lists = [name for name, value in given.items() if is_constraint_list(name, value)]
    if not given:
        return [None]
    if not lists:
        return [make_request(given, import_paths)]
    lengths = {len(given[name]) for name in lists}
    if len(lengths) > 1 or not all(lengths) or len(lists) < len(given):
        raise ArgumentError(
            f"got {' and '.join(f'{name}=' for name in given)}: lists of constraints must have one entry for each "
            "prompt, and cannot be mixed with a constraint for all prompts"
        )
    rows = [{name: given[name][row] for name in lists if given[name][row] is not None} for row in range(lengths.pop())]
    return [make_request(row, import_paths) if row else None for row in rows]


def make_request(given: Mapping[str, Any], import_paths: Sequence[str | PathLike[str]]) -> ConstraintRequest:
    """Return the ConstraintRequest of arguments by name."""
    names = ("schema", "regex", "grammar", "choices", "type")
    schema, regex, grammar, choices, tp = (given.get(name) for name in names)
    return build_request(schema, regex, grammar, choices, tp, import_paths)
