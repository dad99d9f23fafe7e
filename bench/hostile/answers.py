"""What a right answer is: each takes the compiled Constraint and raises `Wrong` if something is not as it must be."""

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
    "Wrong",
    "accepts_all",
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
"""CPU time that no single step, an advance or a mask, may take."""
LETTERS = b'ab1,;c "{[0'
DEPTH = 4
WALK = 60

BYTES = Vocabulary.bytes()


class Wrong(Exception):
    """An answer that is not right."""


def use_constraint(constraint: Constraint) -> None:
    """A mask, a step and the shortest way to the end."""
    matcher = constraint.matcher()
    mask = time_step(matcher.mask)
    if not np.any(mask):
        raise Wrong("an empty mask at the start")
    matcher.shortest_completion()
    allowed = matcher.next_bytes()
    if allowed:
        time_step(lambda: matcher.advance_bytes(bytes([min(allowed)])))
        time_step(matcher.mask)
        matcher.shortest_completion()


def time_step(step: Callable[[], Any]) -> Any:
    """Return the result of a step. Raise Wrong if it takes too long."""
    begin = time.process_time()
    result = step()
    taken = time.process_time() - begin
    if taken > STEP_SECONDS:
        raise Wrong(f"one step takes {taken:.1f} s")
    return result


def check_step(text: bytes) -> Callable[[Constraint], None]:
    """The text is taken in one step, and a mask is made after it."""

    def check(constraint: Constraint) -> None:
        matcher = constraint.matcher()
        time_step(lambda: matcher.advance_bytes(text))
        time_step(matcher.mask)

    return check


def walk_at_random(constraint: Constraint) -> None:
    """A random walk along masks, each of whose steps is timed; it ends where only an end token is allowed."""
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
    """Build a random walk over a vocabulary of words, of which one may hold several members of a list."""

    def check() -> None:
        vocabulary = Vocabulary.from_pretrained("demo")
        constrain.compile(vocabulary, regex="a").matcher().mask()  # prepares the vocabulary
        walk_at_random(constrain.compile(vocabulary, schema=schema, style=style))

    return check


def check_completion(prefix: bytes) -> Callable[[Constraint], None]:
    """After the prefix there is a completion, and it is one."""

    def check(constraint: Constraint) -> None:
        matcher = constraint.matcher()
        time_step(lambda: matcher.advance_bytes(prefix))
        completion = matcher.shortest_completion()
        if completion is None:
            raise Wrong("no completion")
        time_step(lambda: matcher.advance_bytes(completion))
        if not matcher.is_complete:
            raise Wrong("the completion is none")

    return check


def check_no_dead_end(constraint: Constraint) -> None:
    """Whatever short text the masks lead to can be ended."""
    todo = [constraint.matcher()]
    for _ in range(DEPTH):
        following = []
        for matcher in todo:
            if not np.any(matcher.mask()) or matcher.shortest_completion(limit=1_000) is None:
                raise Wrong(f"no way to the end: {matcher!r}")
            for byte in sorted(matcher.next_bytes() & set(LETTERS)):
                there = matcher.fork()
                there.advance_bytes(bytes([byte]))
                following.append(there)
        todo = following


def accepts_all(*texts: str) -> Callable[[Constraint], None]:
    """Return a check that each text is accepted."""

    def check(constraint: Constraint) -> None:
        for text in texts:
            matcher = constraint.matcher()
            try:
                matcher.advance_bytes(text.encode())
            except constrain.TokenRefused:
                raise Wrong(f"refuses {text!r}") from None
            if not matcher.is_complete:
                raise Wrong(f"does not end after {text!r}")

    return check


def check_warning(constraint: Constraint) -> None:
    """Compiling the same schema warns."""
    source = constraint.source or {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        constrain.compile(BYTES, schema=source["schema"])
    if not any(issubclass(one.category, constrain.SchemaWarning) for one in caught):
        raise Wrong("no SchemaWarning")


def check_repeated_repeat() -> None:
    """A repetition of a repetition."""
    use_constraint(constrain.compile(BYTES, constrain.literal("a").repeat(2).repeat(0)))


def check_backtracking_validation() -> None:
    """`constrain validate` with a pattern that backtracks."""
    with tempfile.TemporaryDirectory() as folder:
        schema, text = Path(folder) / "schema.json", Path(folder) / "text.json"
        schema.write_text(json.dumps({"type": "string", "pattern": "^(a+)+b"}), "utf-8")
        text.write_text(json.dumps("a" * 40), "utf-8")
        code, output = run_command_line("validate", str(schema), str(text))
        if code not in (0, 1) or "Traceback" in output:
            raise Wrong(f"exit {code}: {output[-200:]}")


def run_command_line(*arguments: str) -> tuple[int, str]:
    """Run the command line in this process. Return its exit code and its output."""
    from constrain.cli.app import run_command

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = run_command(arguments)
    return code, output.getvalue()
