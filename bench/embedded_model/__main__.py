"""Does the embedded model say what its prompt says? Synthetic questions, with constrain's mask and without one.

    python -m bench embedded_model
    python -m bench embedded_model --checkpoints demo,a/folder --questions 100

sentence, paragraph, lines    fields of a text, under a schema
colour, number                the colour of a thing in a text with another colour; a number in words, as digits
label, yes or no              a label of a text, by words or by meaning; a question about the prompt
tool call                     one of two tools, and its arguments

Names, things and sentences do not occur in the training data. Answers are greedy. Prompts show the constraint as
`constrain.demo.compose_prompt` does. A value is right if it is equal to the one that the prompt names.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from ..checkpoints import BASELINE, CHECKPOINTS, find_checkpoint, load_checkpoint
from ..options import build_parser
from ..record import write_result
from ..tables import build_progress, build_table, format_value, print_table
from .answers import answer_freely, answer_masked
from .judging import Tally, judge_answer
from .questions import TASKS, draw_questions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    parser = build_parser("embedded_model", __doc__, "seed", "results")
    parser.add_argument("--checkpoints", type=lambda text: text.split(","), default=[BASELINE, "demo"], metavar="A,B",
                        help=f"{', '.join(CHECKPOINTS)}, or folders of models with the same tokenizer")  # fmt: skip
    parser.add_argument("--questions", type=int, default=50, help="questions of each task")
    parser.add_argument("--tokens", type=int, default=100, help="most tokens of an answer")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N wrong answers of each task")
    options = parser.parse_args(arguments)
    try:
        for name in options.checkpoints:
            find_checkpoint(name)
    except FileNotFoundError as error:
        print(f"python -m bench embedded_model: {error}", file=sys.stderr)
        return 2
    found = {name: measure_checkpoint(name, options) for name in options.checkpoints}
    print_comparison(found)
    facts = {name: {task: tally.as_row() for task, tally in tallies.items()} for name, tallies in found.items()}
    write_result(options, {"checkpoints": facts})
    return 0


def measure_checkpoint(name: str, options: Any) -> dict[str, Tally]:
    """Return a tally of each task, and of all of them under "all"."""
    loaded = load_checkpoint(name)
    tallies = {task: Tally() for task in (*TASKS, "all")}
    questions = draw_questions(options.questions, options.seed)
    with build_progress(Console(stderr=True)) as progress:
        bar = progress.add_task(name, total=len(questions))
        for task in TASKS:
            chosen = [question for question in questions if question.task == task]
            masked = answer_masked(loaded, chosen, options.tokens)
            free = answer_freely(loaded, chosen, options.tokens)
            wrong = 0
            for question, *texts in zip(chosen, masked, free, strict=True):
                verdict = judge_answer(question, *texts)
                tallies[task].add(question, verdict)
                tallies["all"].add(question, verdict)
                if not verdict.is_right and wrong < options.show:
                    wrong += 1
                    print(f"{question.text}\n  right {question.right!r}, masked {texts[0]}, free {texts[1]!r}")
            progress.advance(bar, len(chosen))
    return tallies


def print_comparison(found: dict[str, dict[str, Tally]]) -> None:
    """Print a row for each task and checkpoint."""
    columns = list(Tally().as_row())
    table = build_table("share of answers in %", ("task", "checkpoint"), columns)
    for task in (*TASKS, "all"):
        for name, tallies in found.items():
            table.add_row(task, name, *(format_value(value) for value in tallies[task].as_row().values()))
    print_table(table)


if __name__ == "__main__":
    sys.exit(main())
