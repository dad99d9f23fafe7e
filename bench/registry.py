"""The registry of benches: the question of each, the meaning of its columns, and an example of its options.

`python -m bench` prints this table, `python -m bench NAME --help` the columns. A bench is a module with
`main(arguments) -> exit code`; `python -m bench.NAME` runs it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

__all__ = ["BENCHES", "Bench", "load_main"]


class Bench(NamedTuple):
    """One question. columns: how to read its tables. example: options of a typical run."""

    question: str
    columns: str
    example: str = ""


BENCHES: dict[str, Bench] = {
    "maskbench": Bench(
        "How exact and how fast are the masks, beside the peers?",
        "counts of schemas by outcome (a schema may be in two); mean, quantiles and maximum in µs of a step (mask and "
        "advance) and from the text of a schema to its first mask; `prepared`: mean µs of preparation in a step, which "
        "are not counted in it; the targets, each a ratio to a peer",
        "--sample 1000 --engines constrain,constrain-any,llguidance,xgrammar --warm-only xgrammar",
    ),
    "mask_errors": Bench(
        "How many masks are wrong, over and under, beside the peers?",
        "masks judged; wrong masks per million: over, a valid token is masked; under, an end is allowed where the text "
        "is not valid; schemas refused and failed; texts and random walks taken, walks that came to an end",
        "--masks 1000000",
    ),
    "schema_suite": Bench(
        "Is every test of the official JSON Schema test suite judged as it says?",
        "tests of each draft that passed, that belong to a refused schema, and that were judged wrong",
        "../shared/data/json-schema-test-suite.tar.gz",
    ),
    "number_texts": Bench(
        "Are numbers in any spelling accepted exactly as exact fractions say?",
        "sets of numbers; states of their automata; texts judged by both; texts judged wrong",
        "--texts 10000000",
    ),
    "keyword_table": Bench(
        "Which keywords does each engine enforce, refuse, narrow or ignore?",
        "small schemas for each keyword by verdict; `--write` writes docs/json-schema.md",
        "--write docs/json-schema.md",
    ),
    "instructions": Bench(
        "How many instructions are a step and a first mask?",
        "instructions by valgrind: a first mask, a step along a text that is new (fresh), known, or warm, and of the "
        "warm step what runs inside the engine",
    ),
    "scaling": Bench(
        "Does time stay flat as maxLength, maxItems, the values of an enum, the optional keys grow to 100,000?",
        "first mask, mean and slowest step at each size; slopes of log time against log size over all sizes that an "
        "engine reached: 0 is flat, 1 is linear",
    ),
    "slowest": Bench(
        "Which steps are the slowest, and what is done in them?",
        "µs of CPU of a step, what it asked the state cache for and for how long, sets, closures and trie nodes",
    ),
    "repeated": Bench(
        "What does a schema cost that was compiled before, in this process or an earlier one?",
        "µs of CPU from the text of a schema to its first mask: the first time, again, and in a later process",
    ),
    "compile_cost": Bench(
        "What does compiling cost where schemas are large or difficult, in time and memory?",
        "ms to the first mask by wall and CPU, ms of another compile, MiB added at the peak; ! is above a mark",
    ),
    "vocabulary": Bench(
        "What do vocabularies of 32k, 128k and 256k tokens cost: preparation, memory, a step?",
        "a vocabulary each: ms to read, prepare and write it, the same again from the store, MB, µs of a step",
    ),
    "memory": Bench(
        "How much memory do a vocabulary and a Constraint take, beside the peers?",
        "MB of a process's own pages: prepared, and by how much a schema made the process grow",
    ),
    "start": Bench(
        "How long until a new process has its first mask, and what of it is numpy's import?",
        "ms by the wall and, in brackets, of CPU: a row for each part of the start, a column for each kind of process",
    ),
    "batches": Bench(
        "What does a row of a batch cost, 1 to 512 texts at once, on one thread and on two, beside the peers?",
        "µs a row, of its mask + of advancing it, means over the steps; `longer of 2 shares` is what two free cores "
        "come to",
        "--threads 1,2",
    ),
    "apply_masks": Bench(
        "What does it cost to apply masks to logits on the CPU, beside the peers and the limit of memory?",
        "µs for all rows by type and mask; the last row is ours in parts of the limit",
    ),
    "decoding": Bench(
        "What does a constraint cost in generation, what do forced text and drafts save, do budgets hold?",
        "tokens per second under a constraint, without one, and their ratio; shares of the time of a batch; answers, "
        "valid and invalid ones, and those over their budget",
        "--parts plain,forced --models demo",
    ),
    "quality": Bench(
        "Do answers conform and are they right, with any local model and any of our samplers?",
        "schemas: the shares that an engine takes and answers validly, and their ratio; ms to compile, to the first "
        "token and for each further one, medians; tasks: the share of right answers; harness: what the task reports",
        "--model demo --sample 100",
    ),
    "embedded_model": Bench(
        "Does the embedded model say what its prompt says, with a mask and without one?",
        "shares in %: values (fields, labels) and whole answers that are right with constrain's mask, greedy; what "
        "guessing among the alternatives gives; answers without a mask that are valid, and those that are right",
    ),
    "plugins": Bench(
        "Are answers and masks inside other engines what our Matcher says?",
        "schemas refused by constrain, or by the engine itself, or whose shortest answer is longer than the model's "
        "context; answers by the verdict of jsonschema, texts that did not end, calls that failed, masks compared and "
        "masks that differ",
        "--sample 500 --seed 1",
    ),
    "jobs": Bench(
        "Does a job over a file write every row exactly once, with the same bytes, after kills and on Ray?",
        "rows of the output; whether it has each row of the input once, in order; whether its bytes are those of the "
        "first run; answers by an independent verdict, and rows with an error; processes killed; rows that an earlier "
        "process had written; seconds of all processes; rows per second of these; tokens of the last process and per "
        "second",
        "--rows 2000",
    ),
    "gpu": Bench(
        "How near is what runs on a card to what the card can do, and does the model ever wait for a mask?",
        "µs of device time, medians, beside the peers' kernels and beside what the bandwidth of the card allows",
        "--count",
    ),
    "grammars": Bench(
        "Do our grammars accept what Lark accepts, and how fast are their masks beside the peers?",
        "agreement: texts, tokens and edits of one byte, and those judged otherwise than Lark does; speed: ms to the "
        "first mask, µs of masks and of advances over a corpus, `lost` texts of another language",
        "--what agreement",
    ),
    "samples": Bench(
        "Are there 20 different valid instances of every schema?",
        "schemas by outcome; `all there are`: fewer, and proven that there are no more",
        "--all",
    ),
    "testing_strategies": Bench(
        "Do schemas give test data, beside hypothesis-jsonschema?",
        "a strategy each: schemas served, documents, keywords that a document exercised",
        "--sample 300",
    ),
    "faithful": Bench(
        "Which samplers draw from p given L, and after how many draws and model evaluations?",
        "P-values of G-tests against the exact law, attempts, particles needed, divergence in nats; a verdict a target",
        "--draws 20000",
    ),
    "faithful.coverage": Bench(
        "Do trusted intervals of estimates cover the truth as often as they say?",
        "for each sampler and kind of model: estimates, how many are trusted, how many of these and of all cover the "
        "truth",
    ),
    "faithful.shapes": Bench(
        "Do methods stand in the order that the AWRS and GAD papers report?",
        "right answers with 95 % intervals, model evaluations and ms an answer; KL of running windows in nats",
    ),
    "faithful.real": Bench(
        "How near is SMC to p given L on real schemas and grammars, with the learned twist and without it?",
        "of the populations of masks alone, of the learned twist, and of a second table: log of the mean Z-hat, the "
        "standard deviation of log Z-hat (nats), share that died, effective particles, rows of the model per "
        "population; gap: nats by which states that no text reached could raise log Z; a verdict a target",
    ),
    "faithful.distilled": Bench(
        "Do twists of distilled n-gram and hidden Markov models help SMC on real constraints?",
        "of the populations of masks alone and of each twist: log of the mean Z-hat, the standard deviation of log "
        "Z-hat (nats), share that died, effective particles, s of CPU; of each model: s of CPU to fit it and to make "
        "the truncated product, states of the constraint in it, its own log Z, and log of the mass that it lost",
    ),
    "faithful.trained": Bench(
        "How do ASAp and exact sampling converge with a transformer that was trained on GAD's grammars?",
        "KL in nats from the law of the last window of draws to the exact one, true and as GAD estimates it, by the "
        "number of draws; seconds of training and its loss; p(L); a verdict a target",
    ),
    "faithful.picture": Bench(
        "What does masking do to the law, in one picture?", "shares of each answer under three laws; writes an SVG"
    ),
    "sampling_cost": Bench(
        "What does drawing from the right distribution cost, apart from the model?",
        "µs per particle and token outside the model; checks, rows, calls and acceptance of an answer",
    ),
    "hostile": Bench(
        "Does any input of a stranger crash the process, run without end, exceed its memory, or give a wrong answer?",
        "a verdict for each engine: answered, refused (a typed error), error, hang, memory, crash, wrong; s of CPU",
    ),
    "serve": Bench(
        "Does the server hold under many clients, schemas, hang-ups, hostile inputs? What does a constraint cost?",
        "requests by kind, those that failed and invalid answers; tokens per second under constraints and without, "
        "seconds of CPU of the server for 1,000 of them, ms to the first token and between tokens; MiB of the server "
        "and their slope per minute",
        "--seconds 300 --clients 64 --schemas 200",
    ),
    "long_runs": Bench(
        "Does memory stay within the budgets of the caches over many schemas and a very long text?",
        "resident MiB after so many schemas and tokens",
    ),
    "pages.comparison": Bench(
        "Where is constrain ahead of its peers, and where behind?",
        "the tables of docs/comparison.md, read from the committed results of other benches; nothing is measured",
        "--write docs/comparison.md",
    ),
    "pages.mask_picture": Bench(
        "What does a mask do, in one picture?",
        "the likeliest next tokens of the embedded model and whether they are allowed; writes an SVG",
    ),
    "pages.distortion_plots": Bench(
        "How does masking distort a distribution, and when does it not?",
        "probabilities of the texts of small models, computed exactly; writes the SVGs of docs/theory.md",
    ),
    "pages.site_links": Bench(
        "Does the built site of the docs have what its pages link to?",
        "links that are broken, with the page of each; pages, links and broken ones in all",
        "build/site",
    ),
    "bare_types": Bench(
        "What does the embedded model write for bare types, such as list[int], by style?",
        "means of an answer: characters, per cent of white space, numbers; the longest run of digits, and answers with "
        "more than 9 in a row",
        "--draws 200",
    ),
    "architecture": Bench(
        "Is the library easy to navigate: import cycles, names used twice, one-word names?",
        "each figure with its limit",
        "--docstrings 20",
    ),
}  # fmt: skip


def load_main(name: str) -> Callable[[Sequence[str] | None], int]:
    """Return the `main` of a bench; only then is its module imported."""
    path = f"bench.{name}"
    module = import_module(path)
    if hasattr(module, "__path__"):
        module = import_module(f"{path}.__main__")
    return module.main  # type: ignore[no-any-return]
