"""What do vocabularies of 32,000, 128,000 and 256,000 tokens cost: preparation, memory, and a step?

    python -m bench vocabulary

32k and 131k are Mistral's (files in the package mistral-common), 128k is Llama 3's. 256k is synthetic: Llama 3's
tokens, those of 131k that it lacks, and pairs of neighbouring words, 256,000 in all. Rows are medians over several
processes:

    read          from the tokenizer's file to a Vocabulary, the first time and again (only ranks are kept)
    prepared      a Vocabulary to a usable table: trie, rows and suffix tries of the common leaves; and written to disk
    from disk     the same from the store; file to table: read again and this, in wall time
    memory        of Vocabulary and table: growth of the private pages of the process (Linux: Private of smaps_rollup)
    a step        mask and advance along a document that was matched before, and along a new one
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import numpy as np

from .options import build_parser, split_names
from .process_figures import read_private_memory
from .record import write_result
from .tables import build_table, format_value, print_table
from .workers import run_in_child

SIZES = {"32k": 32_768, "128k": 128_256, "131k": 131_072, "256k": 256_000}
FLOOR = "row of zeros"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 60},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
        "size": {"type": "number"},
        "note": {"type": "string"},
    },
    "required": ["name", "size"],
}
TEXT = json.dumps({"name": "Łukasz of the hill", "tags": ["red", "blue"], "size": -12.75, "note": "free text, " * 20})
WALKS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    parser = build_parser("vocabulary", __doc__, "vocabulary", "results")
    parser.add_argument("--sizes", type=split_names(SIZES), default=list(SIZES), metavar="A,B", help=", ".join(SIZES))
    parser.add_argument("--times", type=int, default=5, help="processes of each row")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CONSTRAIN_STORE"] = folder
            source = list_sources(options.vocabulary, Path(folder))[name]
            first = run_in_child(partial(measure_once, source, True))
            found = [run_in_child(partial(measure_once, source, False)) for _ in range(options.times)]
        row = {"tokens": name, "size": first["size"], "read, first ms": first["read ms"]}
        row["prepared ms"], row["written ms"] = first["table ms"], first["written ms"]
        for label in ("read ms", "table ms", "file to table, wall ms", "memory MB", "step µs", "new step µs", "row µs"):
            row[f"again: {label}"] = float(np.median([one[label] for one in found]))
        rows.append(row)
    print_vocabularies(rows)
    write_result(options, {"rows": rows})
    return 0


def list_sources(ranks: Path, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return by name the function that reads a Vocabulary."""
    from constrain import Vocabulary

    def mistral(pattern: str) -> Any:
        import mistral_common

        found = sorted(Path(mistral_common.__path__[0]).rglob(pattern))
        return Vocabulary.from_mistral(found[-1])

    return {
        "32k": partial(mistral, "*instruct_tokenizer_240323.model.v3"),
        "128k": partial(Vocabulary.from_tiktoken, ranks),
        "131k": partial(mistral, "tekken_240911.json"),
        "256k": partial(merge_vocabularies, ranks, folder / "merged.tiktoken", mistral),
    }


def merge_vocabularies(ranks: Path, path: Path, mistral: Callable[[str], Any]) -> Any:
    """Return the synthetic vocabulary from a file of ranks, which the first call writes."""
    from base64 import b64encode

    from constrain import Vocabulary

    if not path.exists():
        tokens = [token for token in Vocabulary.from_tiktoken(ranks).tokens if token]
        tokens = list(dict.fromkeys([*tokens, *(token for token in mistral("tekken_240911.json").tokens if token)]))
        words = [token for token in tokens if token.strip().isalpha() and len(token) <= 8]
        pairs = (one + other for one, other in zip(words, words[1:]))
        tokens = list(dict.fromkeys([*tokens, *pairs]))[: SIZES["256k"] - 1]
        path.write_bytes(b"".join(b"%b %d\n" % (b64encode(token), rank) for rank, token in enumerate(tokens)))
    return Vocabulary.from_tiktoken(path, eos_ids=[SIZES["256k"] - 1], size=SIZES["256k"])


def measure_once(source: Callable[[], Any], fresh: bool) -> dict[str, Any]:
    """Run one process. fresh: the store has no files of the vocabulary."""
    from constrain import Vocabulary, compile
    from constrain.compilation.compile_caches import programs, recent
    from constrain.vocabulary import mask_table_cache
    from constrain.vocabulary.mask_table import MaskTable
    from constrain.vocabulary.mask_table_cache import find_mask_table, prepare_common_leaves

    programs.most = recent.most = 0
    compile(Vocabulary.bytes(), schema=SCHEMA).matcher().mask()  # imports, kernels
    prepare_common_leaves(MaskTable(Vocabulary.bytes()))
    Vocabulary.from_tiktoken({b"a": 0}, eos_ids=[1], size=2)
    if fresh:
        source()  # Writes the synthetic vocabulary, and imports packages that read files.
        for path in Path(os.environ["CONSTRAIN_STORE"]).glob("*.vocabulary"):
            path.unlink()
    pages, wall, begin = read_private_memory(), perf_counter_ns(), process_time_ns()
    vocabulary = source()
    read = process_time_ns()
    found: dict[str, Any] = {"size": vocabulary.size, "read ms": (read - begin) / 1e6}
    if fresh:
        table = MaskTable(vocabulary)
        prepare_common_leaves(table)
        made = process_time_ns()
        mask_table_cache._save(table)
        return {**found, "table ms": (made - read) / 1e6, "written ms": (process_time_ns() - made) / 1e6}
    find_mask_table(vocabulary)
    found |= {"table ms": (process_time_ns() - read) / 1e6, "file to table, wall ms": (perf_counter_ns() - wall) / 1e6}
    found["memory MB"] = (read_private_memory() - pages) / 1e6
    return found | measure_steps(vocabulary)


def measure_steps(vocabulary: Any) -> dict[str, float]:
    """Return µs of a step."""
    from constrain import compile

    tokens = vocabulary.tokenize(TEXT.encode())
    out = np.zeros((vocabulary.size + 31) // 32, np.int32)

    def walk() -> float:
        matcher = constraint.matcher()
        begin = process_time_ns()
        for token in tokens:
            matcher.mask(out)
            matcher.advance(token)
        return (process_time_ns() - begin) / 1e3 / len(tokens)

    firsts = []
    for _ in range(9):
        constraint = compile(vocabulary, schema=SCHEMA)
        firsts.append(walk())
    begin = process_time_ns()
    other = np.ones_like(out)
    for _ in range(1_000):
        out[:] = other
    row = (process_time_ns() - begin) / 1e6
    return {
        "new step µs": float(np.median(firsts[1:])),
        "step µs": float(np.median([walk() for _ in range(WALKS)])),
        "row µs": row,
    }


def print_vocabularies(rows: list[dict[str, Any]]) -> None:
    """Print a table with a column for each vocabulary."""
    title = "vocabularies (ms and µs of the CPU where not said otherwise)"
    table = build_table(title, [""], [row["tokens"] for row in rows])
    for label in list(rows[0])[1:]:
        table.add_row(label, *(format_value(row[label]) for row in rows))
    print_table(table)


if __name__ == "__main__":
    sys.exit(main())
