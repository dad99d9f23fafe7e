"""Checks of answers: each takes a compiled Constraint and raises `WrongAnswer` if its behaviour is wrong."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import constrain
from constrain import Constraint, Style, Vocabulary

__all__ = [
    "BYTES",
    "STEP_SECONDS",
    "WrongAnswer",
    "check_accepted",
    "check_backtracking_validation",
    "check_completion",
    "run_command_line",
    "check_no_dead_end",
    "check_repeated_repeat",
    "check_step",
    "time_step",
    "use_constraint",
    "walk_at_random",
    "check_warning",
    "check_with_words",
]

STEP_SECONDS = 1.0
"""Maximum CPU time of a step: an advance or a mask."""
LETTERS = b'ab1,;c "{[0'
DEPTH = 4
"""Bytes that `check_no_dead_end` tries, and the length of the texts."""
WALK = 60
"""Maximum number of steps of a random walk."""

BYTES = Vocabulary.bytes()


class WrongAnswer(Exception):
    """An answer or a behaviour is wrong."""


def use_constraint(constraint: Constraint) -> None:
    """Make a mask, advance by a byte, and compute the shortest completion."""
    matcher = constraint.matcher()
    mask = time_step(matcher.mask)
    if not np.any(mask):
        raise WrongAnswer("an empty mask at the start")
    matcher.shortest_completion()
    allowed = matcher.next_bytes()
    if allowed:
        time_step(lambda: matcher.advance_bytes(bytes([min(allowed)])))
        time_step(matcher.mask)
        matcher.shortest_completion()


def time_step(step: Callable[[], Any]) -> Any:
    """Return the result of a step. Raise WrongAnswer if it takes too long."""
    begin = time.process_time()
    result = step()
    taken = time.process_time() - begin
    if taken > STEP_SECONDS:
        raise WrongAnswer(f"one step takes {taken:.1f} s")
    return result


def check_step(text: bytes) -> Callable[[Constraint], None]:
    """Return a check: advance by a text in one step, and make the mask after it."""

    def check(constraint: Constraint) -> None:
        matcher = constraint.matcher()
        time_step(lambda: matcher.advance_bytes(text))
        time_step(matcher.mask)

    return check


def walk_at_random(constraint: Constraint) -> None:
    """Walk at random along masks and time each step; end where only an end token is allowed."""
    matcher, rng = constraint.matcher(), np.random.default_rng(0)
    ends = constraint.vocabulary.eos_ids
    for _ in range(WALK):
        words = time_step(matcher.mask)
        allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        allowed = allowed[~np.isin(allowed, ends)]
        if not len(allowed):
            return
        time_step(partial(matcher.advance, int(rng.choice(allowed))))


def check_with_words(schema: object, style: Style) -> Callable[[], None]:
    """Return a check: a random walk over a vocabulary of words, in which one token may cover several array items."""

    def check() -> None:
        vocabulary = Vocabulary.from_pretrained("demo")
        constrain.compile(vocabulary, regex="a").matcher().mask()  # prepares the vocabulary
        walk_at_random(constrain.compile(vocabulary, schema=schema, style=style))

    return check


def check_completion(prefix: bytes) -> Callable[[Constraint], None]:
    """Return a check: the shortest completion after a prefix exists and completes it."""

    def check(constraint: Constraint) -> None:
        matcher = constraint.matcher()
        time_step(lambda: matcher.advance_bytes(prefix))
        completion = matcher.shortest_completion()
        if completion is None:
            raise WrongAnswer("no completion")
        time_step(lambda: matcher.advance_bytes(completion))
        if not matcher.is_complete:
            raise WrongAnswer("the completion does not complete the text")

    return check


def check_no_dead_end(constraint: Constraint) -> None:
    """Check that every short text that the masks allow has a completion."""
    todo = [constraint.matcher()]
    for _ in range(DEPTH):
        following = []
        for matcher in todo:
            if not np.any(matcher.mask()) or matcher.shortest_completion(limit=1_000) is None:
                raise WrongAnswer(f"a dead end: {matcher!r}")
            for byte in sorted(matcher.next_bytes() & set(LETTERS)):
                there = matcher.fork()
                there.advance_bytes(bytes([byte]))
                following.append(there)
        todo = following


def check_accepted(*texts: str) -> Callable[[Constraint], None]:
    """Return a check that each text is accepted."""

    def check(constraint: Constraint) -> None:
        for text in texts:
            matcher = constraint.matcher()
            try:
                matcher.advance_bytes(text.encode())
            except constrain.TokenRefused:
                raise WrongAnswer(f"refuses {text!r}") from None
            if not matcher.is_complete:
                raise WrongAnswer(f"does not end after {text!r}")

    return check


def check_warning(constraint: Constraint) -> None:
    """Check that compiling the schema warns."""
    source = constraint.source or {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        constrain.compile(BYTES, schema=source["schema"])
    if not any(issubclass(one.category, constrain.SchemaWarning) for one in caught):
        raise WrongAnswer("no SchemaWarning")


def check_repeated_repeat() -> None:
    """Compile a repetition of a repetition."""
    use_constraint(constrain.compile(BYTES, constrain.literal("a").repeat(2).repeat(0)))


def check_backtracking_validation() -> None:
    """Run `constrain validate` with a pattern that backtracks exponentially."""
    with tempfile.TemporaryDirectory() as folder:
        schema, text = Path(folder) / "schema.json", Path(folder) / "text.json"
        schema.write_text(json.dumps({"type": "string", "pattern": "^(a+)+b"}), "utf-8")
        text.write_text(json.dumps("a" * 40), "utf-8")
        code, output = run_command_line("validate", str(schema), str(text))
        if code not in (0, 1) or "Traceback" in output:
            raise WrongAnswer(f"exit {code}: {output[-200:]}")


def run_command_line(*arguments: str) -> tuple[int, str]:
    """Run the command line in this process. Return its exit code and its output."""
    from constrain.cli.app import run_command

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = run_command(arguments)
    return code, output.getvalue()
