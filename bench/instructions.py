"""How many instructions are a step and a first mask? They do not depend on the speed and load of the machine.

    python -m bench instructions

Each engine runs under `valgrind --tool=callgrind`, which counts instructions by interpreting them. Client requests
(valgrind.h; `Requests`) begin and end the count: from the text of a schema to its first mask; the walk along a text,
mask and advance token by token, with empty caches (fresh); and the third such walk (warm). The count of the same loop
with an engine that does nothing is subtracted. The 16 KB of a mask are copied with 32 bytes per instruction, so few
instructions may still take time. valgrind does not support AVX-512, so kernels are compiled for x86-64-v3. For a warm
step the instructions inside the engine (kernels, or the library of the peer) are also counted apart; the rest is
Python, the binding, and the C library.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from constrain.compilation.compile_caches import flush_caches
from constrain.kernels.native.native_library import find_compiled

from .corpus import Case, Instance, Llama3
from .curves import draw_plot
from .engines import ENGINES, Engine
from .measure import WARM, measure_schema, tokenise_case
from .options import build_parser
from .record import write_result
from .tables import print_rows

PROSE = "The quick brown fox jumps over the lazy dog, and nobody knows why it does; perhaps it likes to. " * 2
CASES = {
    "a free string": ({"type": "string"}, PROSE),
    "a string, maxLength": ({"type": "string", "maxLength": 5000}, PROSE),
    "numbers": ({"type": "array", "items": {"type": "number"}}, [number / 7 for number in range(40)]),
    "an object": (
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "born": {"type": "string", "format": "date"},
                "height": {"type": "integer", "minimum": 0, "maximum": 300},
                "languages": {"type": "array", "items": {"enum": ["de", "en", "fr", "pl", "ja"]}, "maxItems": 5},
                "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            },
            "required": ["name", "born"],
            "additionalProperties": False,
        },
        {
            "name": "Ada Lovelace",
            "born": "1815-12-10",
            "height": 165,
            "languages": ["en", "fr"],
            "address": {"city": "London"},
        },
    ),
    "a pattern": (
        {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}-[a-f0-9]{8}$"}},
        [f"DE{number:02}-{number * 7654321 % 2**32:08x}" for number in range(12)],
    ),
    "any JSON": ({}, {"a": [1, True, None, "b c"], "d": {"e": [{"f": "ghi jkl"}, -2.5e3]}}),
}
"""A schema, and an instance that uses its features."""
PHASES = ("first mask", "fresh", "warm")
SECONDS = 900
LEVEL = 1
"""The level of the target linux-x86_64 that valgrind emulates: x86-64-v3."""
COMPILE = f"""
from constrain.kernels.native.library_cache import list_libraries
from constrain.kernels.native.native_library import SUFFIX, TABLE, compute_source_hash, name_platform, open_library
libraries = map(open_library, list_libraries(compute_source_hash(), name_platform(), SUFFIX))
if not any(find and find(TABLE + "{LEVEL}") for find in libraries):
    from constrain.kernels.jit.precompile import compile_for_host
    compile_for_host(compute_source_hash(), lambda done, count: None, {LEVEL})
"""
COPIES = {"GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000"}
"""Makes the C library copy without `rep movsb`, which valgrind counts once for every byte."""
OWN = {name: "/kernels" if name.startswith("constrain") else f"/{name}/" for name in ENGINES}
"""Part of the paths of the compiled code of an engine."""
LABEL = re.compile(r"^desc: Trigger: Client Request: (.*)$", re.M)


class Requests:
    """Client requests to callgrind: a sequence of instructions that has an effect under valgrind only."""

    CODE = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
    """rax = the request, rdx = 0; four rotations of rdi that together do nothing; xchg rbx, rbx; the answer."""
    RUNNING, ZERO, DUMP_AT, START = 0x1001, 0x43540001, 0x43540003, 0x43540004

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.memory.write(self.CODE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.words = (ctypes.c_uint64 * 6)()
        self.call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)

    def send(self, request: int, argument: int = 0) -> int:
        """Send a request. Return the answer of valgrind, or 0 without it."""
        self.words[0], self.words[1] = request, argument
        return int(self.call(ctypes.addressof(self.words)))

    def dump(self, label: str) -> None:
        """Write the counts since the last dump or ZERO, with a label."""
        text = ctypes.create_string_buffer(label.encode())
        self.send(self.DUMP_AT, ctypes.addressof(text))


class Idle:
    """An engine that does nothing."""

    def compile(self, text: str) -> None: ...
    def start(self) -> None: ...
    def mask(self) -> None: ...
    def advance(self, token: int) -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code: 2 if valgrind is missing."""
    chosen = ["constrain", "constrain-any", "llguidance"]
    parser = build_parser("instructions", __doc__, "vocabulary", "results", engines=ENGINES, engines_default=chosen)
    parser.add_argument("--inside", choices=list(ENGINES), help="internal: the engine that runs under valgrind")
    options = parser.parse_args(arguments)
    if options.inside:
        run_under_valgrind(options.inside, Llama3(options.vocabulary))
        return 0
    console = Console(stderr=True)
    if platform.machine() != "x86_64" or shutil.which("valgrind") is None:
        console.print("[red]This needs valgrind, on x86-64.[/]")
        return 2
    environment = {**os.environ, **COPIES, "PYTHONHASHSEED": "0"}
    with console.status("compiling kernels for x86-64-v3"):
        subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True)
    with console.status("engines under valgrind, side by side (minutes)"), ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(partial(count_instructions, options.vocabulary, environment), options.engines)
        counts = dict(zip(options.engines, found, strict=True))
    vocabulary = Llama3(options.vocabulary)
    lengths = {case: len(vocabulary.encode(spell_instance(case))) for case in CASES}
    rows = summarise_counts(counts, lengths)
    print_rows("instructions from the text of a schema to its first mask, and of a step (mask and advance)", rows, 2)
    path = write_result(options, {"rows": rows})
    panels = {
        phase: {
            name: [(row["tokens"], row[phase]) for row in sorted(rows, key=lambda row: row["tokens"])
                   if row["engine"] == name and row[phase]]
            for name in counts
        }
        for phase in PHASES
    }  # fmt: skip
    draw_plot(path.with_suffix(".svg"), "Instructions", "tokens of the text", "instructions", panels)
    return 0


def spell_instance(name: str) -> str:
    """Return the instance of a case as text."""
    return json.dumps(CASES[name][1], ensure_ascii=False)


def count_instructions(vocabulary: Path, environment: dict[str, str], name: str) -> dict[str, int]:
    """Run one engine under valgrind. Return instructions by label."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--smc-check=all-non-file",
            "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={folder}/out", sys.executable,
            "-m", "bench.instructions", "--inside", name, "--vocabulary", str(vocabulary),
        ]  # fmt: skip
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode:
            raise RuntimeError(f"{name} under valgrind ended with {done.returncode}: {done.stderr[-2000:]}")
        return read_dumps(Path(folder), OWN[name])


def read_dumps(folder: Path, own: str) -> dict[str, int]:
    """Return the instructions of all dumps by label, and of objects with `own` in their path as "<label>, inside"."""
    found = {}
    for path in folder.iterdir():
        text = path.read_text()
        if label := LABEL.search(text):
            costs = sum_by_object(text)
            found[label[1]] = sum(costs.values())
            found[f"{label[1]}, inside"] = sum(count for name, count in costs.items() if own in name)
    return found


def sum_by_object(text: str) -> dict[str, int]:
    """Sum the instructions of each object file in a dump. In callgrind's format the line after `calls=`
    is of the callee.
    """
    costs: dict[str, int] = {}
    here, called = "", False
    for line in text.splitlines():
        if line.startswith("ob="):
            here = line[3:]
        elif line[:1].isdigit() and not called:
            costs[here] = costs.get(here, 0) + int(line.split()[1])
        called = line.startswith("calls=")
    return costs


def run_under_valgrind(name: str, vocabulary: Llama3) -> None:
    """Run in valgrind: prepare the engine without counting, then count every case."""
    if OWN[name] == "/kernels" and find_compiled() is None:
        raise RuntimeError("the sources of the kernels have changed; under valgrind they would compile for hours")
    engine = ENGINES[name](vocabulary)
    measure_schema(engine, tokenise_case(WARM, vocabulary))
    requests = Requests()
    if not requests.send(Requests.RUNNING):
        raise RuntimeError("--inside runs under valgrind only")
    tokens = {case: vocabulary.encode(spell_instance(case)) for case in CASES}
    taken = {case: accepts_case(engine, case, vocabulary) for case in CASES}
    requests.send(Requests.START)
    for case, (schema, _) in CASES.items():
        if taken[case]:
            for label, driven in (("", engine), ("idle ", Idle())):
                drive_engine(driven, f"{label}{case}", json.dumps(schema), tokens[case], requests)


def accepts_case(engine: Engine, case: str, vocabulary: Llama3) -> bool:
    """Return whether the engine compiles the schema and accepts the text of a case."""
    # The text of the schema differs from the one that is counted, since engines may cache what they compile.
    schema = json.dumps(CASES[case][0], indent=1)
    instance = Instance(spell_instance(case), True)
    result = measure_schema(engine, tokenise_case(Case(case, schema, (instance,)), vocabulary))
    return result.refused is None and result.error is None and not result.rejected


def drive_engine(engine: Any, label: str, schema: str, tokens: list[int], requests: Requests) -> None:
    """Run one case: a dump of the first mask, and of each walk."""
    requests.send(Requests.ZERO)
    engine.compile(schema)
    engine.start()
    engine.mask()
    requests.dump(f"{label}: first mask")
    for walk in ("fresh", "again", "warm"):
        engine.start()
        flush_caches()  # valgrind counts the thread that writes what was learned, too
        requests.send(Requests.ZERO)
        for token in tokens:
            engine.mask()
            engine.advance(token)
        requests.dump(f"{label}: {walk}")


def summarise_counts(counts: dict[str, dict[str, int]], lengths: dict[str, int]) -> list[dict[str, Any]]:
    """Return a row for each case and engine: instructions of the first mask, of a fresh and a warm step, and of the
    warm step inside the engine; None if the engine does not accept the schema or the text.
    """
    rows = []
    for case, tokens in lengths.items():
        for name, found in counts.items():
            row: dict[str, Any] = {"case": case, "engine": name, "tokens": tokens}
            for phase in PHASES:
                whole, idle = found.get(f"{case}: {phase}"), found.get(f"idle {case}: {phase}")
                steps = 1 if phase == "first mask" else tokens
                row[phase] = None if whole is None or idle is None else round((whole - idle) / steps)
            inside = found.get(f"{case}: warm, inside")
            row["inside"] = None if inside is None else round(inside / tokens)
            rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
