"""Collect all errors that lark finds in a grammar, not only the first: each is repaired, and the rest parsed again.

An invalid definition is replaced by a placeholder of the same length, and a missing name is defined at the end of the
text. So positions remain correct, and no errors are reported that only follow from others.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from ...base.errors import ConstrainError, GrammarError, SourceError
from ...frontends.lark.lark_literals import explain_literal
from ...frontends.lark.lark_loader import load_grammar
from ...frontends.lark.source_map import SourceMap

__all__ = ["collect_errors"]

MOST = 25
"""Maximum number of errors that are collected."""
MISSING = re.compile(r"(?:rule|terminal) `(\w+)` is used but not defined")


def collect_errors(text: str, *, start: str, name: str, import_paths: tuple[str, ...] = ()) -> list[ConstrainError]:
    """Return the errors, in the order of the text; empty if it is a valid grammar."""
    errors: list[ConstrainError] = []
    current, added = text, ""
    for _ in range(MOST):
        try:
            load_grammar(current + added, start=start, source=name, import_paths=import_paths)
            break
        except ConstrainError as error:
            if error.position is not None and error.source == current + added and error.position <= len(text):
                reported: ConstrainError = type(error)(
                    error.cause, source=text, position=error.position, hint=error.hint
                )
            else:
                reported = error
            if any((reported.cause, reported.position) == (one.cause, one.position) for one in errors):
                break
            errors.append(reported)
            if not isinstance(error, SourceError) or reported is error or error.position is None:
                break
            missing = MISSING.match(error.cause)
            if missing is not None:
                added += f'\n{missing[1]}: "{len(added)}placeholder"'
                continue
            patched = blank_definition(current, error.position)
            if patched is None or patched == current:
                break
            current = patched
    reported_lines = {text.count("\n", 0, error.position) for error in errors if error.position is not None}
    if errors:  # patterns in definitions that became unreachable through the placeholders were not checked
        for token in SourceMap(text).tokens:
            if token.kind in ("pattern", "string") and (literal := explain_literal(token.kind, token.text)):
                offset, cause, cure = literal
                if text.count("\n", 0, token.position) not in reported_lines:
                    errors.append(GrammarError(cause, source=text, position=token.position + offset, hint=cure))
    return sorted(errors, key=lambda error: len(text) if error.position is None else error.position)


def blank_definition(text: str, position: int) -> str | None:
    """Return the text with a placeholder for the definition or directive at a position, None if there is none."""
    source_map = SourceMap(text)
    lines = sorted(
        {text.rfind("\n", 0, at) + 1 for positions in source_map.definitions.values() for at in positions}
        | {text.rfind("\n", 0, token.position) + 1 for token in source_map.tokens if token.kind == "directive"}
    )
    index = bisect_right(lines, position) - 1
    if index < 0:
        return None
    first = lines[index]
    last = lines[index + 1] if index + 1 < len(lines) else len(text)
    body = text[first:last]
    head = re.match(r"[ \t]*[?!]*(\w+)(\{[^}\n]*\})?(?:\.-?\d+)?[ \t]*:", body)
    repeated = head is not None and source_map.definitions.get(head[1], [first])[0] < first
    if head is None or repeated or body.lstrip().startswith("%"):
        filled = re.sub(r"[^\n]", " ", body)
    else:
        definition = body[head.end() :]
        filler = f' "{first}"'
        if len(definition.rstrip("\n")) < len(filler):
            return None
        filled = head[0] + filler + re.sub(r"[^\n]", " ", definition[len(filler) :])
        if "\n" in definition[: len(filler)]:
            return None
    return text[:first] + filled + text[last:]
