"""Compare Lark's and our verdicts on the texts of a language and on random edits of them.

A disagreement is confirmed by parsing the whole edited text with both. If a verdict from stored states differs from
that of the whole text, it is counted as a mistake of this benchmark. One edit in CHECKED is parsed as a whole in any
case.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.constraint import Constraint
from constrain.frontends.lark import to_grammar
from constrain.vocabulary.vocabulary import Vocabulary
from tests.text_acceptance import accepts_text

from ..corpus import Llama3
from ..workers import fork_child, reap_child
from . import our_verdicts
from .edits import draw_edit
from .languages import Language, Text
from .oracle import Oracle

__all__ = ["Comparison", "compare_text", "compile_language", "compare_texts"]

CHECKED = 500
"""One edit in so many is parsed as a whole by both."""
EXAMPLES = 5
"""Maximum number of disagreements of a text that are reported; all are counted."""


@dataclass(slots=True)
class Comparison:
    """The outcome of one text.

    verdict: "accepted" (by both), "refused" (by both), "not UTF-8", or "differ". tokens: those that were matched.
    edits: tried. kept: edits after which both accept. differences: edits on which the two differ. mistakes: verdicts
    from stored states that parsing the whole text did not confirm. checked: edits on which both agreed and that were
    parsed as a whole.
    """

    name: str
    size: int
    verdict: str = "accepted"
    tokens: int = 0
    edits: int = 0
    kept: int = 0
    differences: int = 0
    checked: int = 0
    mistakes: int = 0
    seconds: float = 0.0
    examples: list[dict[str, Any]] = field(default_factory=list)


def compile_language(language: Language, vocabulary: Vocabulary) -> Constraint:
    """Compile a language."""
    grammar = to_grammar(language.text, start=language.start, lexer=language.lexer)  # type: ignore[arg-type]
    return compile_grammar(grammar, vocabulary)


def compare_text(text: Text, oracle: Oracle, made: Constraint, encoding: Llama3, edits: int, seed: int) -> Comparison:
    """Compare the verdicts on one text and its edits."""
    began = time.perf_counter()
    found = Comparison(text.name, len(text.content))
    _fill_comparison(found, text, oracle, made, encoding, edits, random.Random(f"{seed} {text.name}"))
    found.seconds = time.perf_counter() - began
    return found


def _fill_comparison(
    found: Comparison, text: Text, oracle: Oracle, made: Constraint, encoding: Llama3, edits: int, rng: random.Random
) -> None:
    """Judge a text and its edits with both, and count what differs."""
    try:
        content = text.content.decode()
    except UnicodeDecodeError:
        found.verdict = "not UTF-8"
        return
    wanted = oracle.accepts(text.content)
    if not wanted:
        found.verdict = "differ" if accepts_text(made, text.content) else "refused"
        if found.verdict == "differ":
            found.examples.append({"what": "the file", "lark": False, "ours": True})
        return
    tokens = encoding.encode(content)
    walked = our_verdicts.walk_text(made, tokens)
    found.tokens = len(tokens) if walked.refused is None else walked.refused
    if walked.refused is not None or not walked.complete:
        found.verdict = "differ"
        found.examples.append(_describe_refusal(text, tokens, walked, encoding, accepts_text(made, text.content)))
        return
    trace, checkpoints = oracle.trace(text.content), our_verdicts.Checkpoints(made, text.content)
    for number in range(edits):
        edit = draw_edit(text.content, rng)
        lark, own = trace.accepts(edit), checkpoints.accepts(edit)
        found.edits += 1
        if lark != own or number % CHECKED == 0:
            edited = edit.apply(text.content)
            whole = oracle.accepts(edited), accepts_text(made, edited)
            found.checked += lark == own
            found.mistakes += whole != (lark, own)
            if whole != (lark, own) or whole[0] != whole[1]:
                found.differences += whole[0] != whole[1]
                if len(found.examples) < EXAMPLES:
                    around = slice(max(0, edit.start - 60), edit.start + 60)
                    found.examples.append(
                        {
                            "what": f"byte {edit.start}: {edit.removed} removed, {edit.inserted!r} inserted",
                            "around": repr(edited[around]),
                            "lark": whole[0],
                            "ours": whole[1],
                            "by notes": [lark, own],
                        }
                    )
        found.kept += lark and own


def _describe_refusal(
    text: Text, tokens: list[int], walked: our_verdicts.Walk, encoding: Llama3, by_bytes: bool
) -> dict[str, Any]:
    """Return an example: where we refuse a text that Lark accepts."""
    if walked.refused is None:
        return {"what": "the end", "lark": True, "ours": by_bytes}
    before = encoding.decode(tokens[max(0, walked.refused - 20) : walked.refused])
    token = encoding.decode([tokens[walked.refused]])
    return {
        "what": f"token {walked.refused} is not in the mask",
        "around": f"{before!r} then {token!r}",
        "lark": True,
        "ours": by_bytes,
    }


def compare_texts(
    texts: Sequence[Text], oracle: Oracle, made: Constraint, encoding: Llama3, edits: int, seed: int, seconds: float,
    processes: int,
) -> Iterator[Comparison]:  # fmt: skip
    """Compare all texts in several processes until the time is up; texts that are not reached are not yielded."""
    end = time.monotonic() + seconds
    work = partial(compare_text, oracle=oracle, made=made, encoding=encoding, edits=edits, seed=seed)
    encoding.encode("")  # loads the vocabulary once, before processes are forked
    shares = [list(texts[first::processes]) for first in range(processes)]
    open_pipes: dict[Connection, tuple[int, list[Text]]] = {}

    def start(share: list[Text]) -> None:
        if share and time.monotonic() < end:
            pid, pipe = fork_child(partial(_compare_share, work, share, end))
            open_pipes[pipe] = pid, share

    for share in shares:
        start(share)
    while open_pipes:
        for pipe in cast("list[Connection]", wait(list(open_pipes))):
            pid, share = open_pipes[pipe]
            try:
                found = pipe.recv()
            except EOFError:
                del open_pipes[pipe]
                pipe.close()
                status = reap_child(pid, kill=False)
                if status and share:
                    yield Comparison(
                        share[0].name, len(share[0].content), f"crash, {os.waitstatus_to_exitcode(status)}"
                    )
                    start(share[1:])
                continue
            share.pop(0)
            yield found


def _compare_share(work: Any, share: list[Text], end: float, out: Connection) -> None:
    """Send the outcome of every text of a share, until the time is up."""
    for text in list(share):
        if time.monotonic() > end:
            return
        out.send(work(text))
