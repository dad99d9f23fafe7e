"""Memory over long runs: many distinct schemas in one process, and one very long text.

    python -m bench long_runs [--schemas 10000] [--tokens 200000]

Prints the resident memory during the run, and fails if it grows beyond the budgets of the caches: `recent`
retains up to 64 Constraints and 128 MiB of their state caches, one state cache may fill `Limits.state_cache_bytes`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence

from constrain import Matcher, Vocabulary, compile
from constrain.compilation.compile_caches import recent

from .options import build_parser
from .process_figures import read_resident_memory


def read_collected_memory() -> float:
    """Return the resident memory of this process in MiB, after a garbage collection."""
    gc.collect()
    return read_resident_memory()


def build_schema(k: int) -> dict[str, object]:
    """Return a different schema for each number."""
    kinds: list[dict[str, object]] = [
        {"type": "string", "pattern": f"^[a-z]{{1,{k % 9 + 1}}}-{k}$"}, {"type": "integer", "minimum": k},
        {"enum": [f"v{k}", k, None]}, {"type": "array", "items": {"type": "string", "maxLength": k % 50 + 1}},
    ]  # fmt: skip
    properties = {f"p{k}_{j}": kinds[(k + j) % len(kinds)] for j in range(5)}
    return {"type": "object", "properties": properties, "required": list(properties)[:3], "additionalProperties": False}


def use_schema(vocabulary: Vocabulary, k: int) -> None:
    """Compile one schema and match an instance, with a mask at each byte."""
    matcher = compile(vocabulary, schema=build_schema(k)).matcher()
    text = matcher.shortest_completion() or b""
    out = matcher.mask()
    for byte in text:
        matcher.mask(out)
        matcher.advance(byte)


def use_many_schemas(vocabulary: Vocabulary, count: int, steps: int = 10) -> Iterator[tuple[int, float]]:
    """Use `count` distinct schemas; yield (schemas, MiB) `steps` times."""
    for k in range(count):
        use_schema(vocabulary, k)
        if (k + 1) % max(1, count // steps) == 0:
            yield k + 1, read_collected_memory()


def take_long_text(matcher: Matcher, count: int, steps: int = 10) -> Iterator[tuple[int, float]]:
    """Match `count` tokens of an array of equal records; yield (tokens, MiB) `steps` times."""
    record = b'{"name":"abc","n":[1,22,333]},'
    matcher.advance(ord("["))
    out = matcher.mask()
    for k in range(count):
        matcher.mask(out)
        matcher.advance(record[k % len(record)])
        if (k + 1) % max(1, count // steps) == 0:
            yield k + 1, read_collected_memory()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts. Return the exit code: 1 if memory grew beyond the budgets."""
    parser = build_parser("long_runs", __doc__)
    parser.add_argument("--schemas", type=int, default=10_000, help="distinct schemas")
    parser.add_argument("--tokens", type=int, default=200_000, help="tokens of the text")
    options = parser.parse_args(arguments)
    vocabulary = Vocabulary.bytes()
    failed = False
    print(f"start: {read_collected_memory():.0f} MiB")
    found = []
    for count, size in use_many_schemas(vocabulary, options.schemas):
        found.append(size)
        cached = f"state caches of {len(recent)} constraints {recent.bytes_used / 2**20:.0f}"
        print(f"{count:7,} schemas: {size:.0f} MiB, {cached}")
    # The LRU is full after the first tenth or so; from then on memory is flat.
    failed |= found[-1] > found[1] + 64
    recent.clear()
    records = {"type": "array", "items": {"type": "object", "required": ["name", "n"]}}
    matcher = compile(vocabulary, schema=records).matcher()
    before = read_collected_memory()
    for count, size in take_long_text(matcher, options.tokens):
        print(f"{count:7,} tokens: {size:.0f} MiB")
    print(f"{(read_collected_memory() - before) * 2**20 / options.tokens:.0f} bytes a token")
    failed |= read_collected_memory() > before + 64
    print("not flat" if failed else "flat")
    return failed


if __name__ == "__main__":
    sys.exit(main())
