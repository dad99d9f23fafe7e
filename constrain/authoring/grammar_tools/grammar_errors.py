"""All that lark finds wrong in a grammar, not only the first: what is wrong is put right, and the rest read again.

A definition in which something is wrong is replaced by a placeholder of the same length, a name that is missing is
defined at the end of the text. So places stay true, and nothing is reported that only follows from something else.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from ...base.errors import ConstrainError, GrammarError, SourceError
from ...frontends.lark.lark_literals import explain_literal
from ...frontends.lark.lark_loader import load_grammar
from ...frontends.lark.source_map import SourceMap

__all__ = ["errors"]

MOST = 25
"""Errors that are looked for."""
MISSING = re.compile(r"(?:rule|terminal) `(\w+)` is used but not defined")


def errors(text: str, *, start: str, name: str, import_paths: tuple[str, ...] = ()) -> list[ConstrainError]:
    """What is wrong, in the order of the text; empty if it is a grammar."""
    found: list[ConstrainError] = []
    here, added = text, ""
    for _ in range(MOST):
        try:
            load_grammar(here + added, start=start, source=name, import_paths=import_paths)
            break
        except ConstrainError as error:
            if error.position is not None and error.source == here + added and error.position <= len(text):
                told: ConstrainError = type(error)(error.cause, source=text, position=error.position, hint=error.hint)
            else:
                told = error
            if any((told.cause, told.position) == (one.cause, one.position) for one in found):
                break
            found.append(told)
            if not isinstance(error, SourceError) or told is error or error.position is None:
                break
            missing = MISSING.match(error.cause)
            if missing is not None:
                added += f'\n{missing[1]}: "{len(added)}placeholder"'
                continue
            patched = without(here, error.position)
            if patched is None or patched == here:
                break
            here = patched
    told_lines = {text.count("\n", 0, error.position) for error in found if error.position is not None}
    if found:  # a pattern in what the placeholders made useless was not looked at
        for token in SourceMap(text).tokens:
            if token.kind in ("pattern", "string") and (literal := explain_literal(token.kind, token.text)):
                offset, cause, cure = literal
                if text.count("\n", 0, token.position) not in told_lines:
                    found.append(GrammarError(cause, source=text, position=token.position + offset, hint=cure))
    return sorted(found, key=lambda error: len(text) if error.position is None else error.position)


def without(text: str, position: int) -> str | None:
    """The text with a placeholder in place of the definition or directive at a position; None if there is none."""
    places = SourceMap(text)
    lines = sorted(
        {text.rfind("\n", 0, at) + 1 for positions in places.definitions.values() for at in positions}
        | {text.rfind("\n", 0, token.position) + 1 for token in places.tokens if token.kind == "directive"}
    )
    which = bisect_right(lines, position) - 1
    if which < 0:
        return None
    first = lines[which]
    last = lines[which + 1] if which + 1 < len(lines) else len(text)
    body = text[first:last]
    head = re.match(r"[ \t]*[?!]*(\w+)(\{[^}\n]*\})?(?:\.-?\d+)?[ \t]*:", body)
    again = head is not None and places.definitions.get(head[1], [first])[0] < first
    if head is None or again or body.lstrip().startswith("%"):
        filled = re.sub(r"[^\n]", " ", body)
    else:
        rest = body[head.end() :]
        filler = f' "{first}"'
        if len(rest.rstrip("\n")) < len(filler):
            return None
        filled = head[0] + filler + re.sub(r"[^\n]", " ", rest[len(filler) :])
        if "\n" in rest[: len(filler)]:
            return None
    return text[:first] + filled + text[last:]
