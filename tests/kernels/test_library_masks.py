"""The library of kernels and numba's own compilation of them write equal masks; equal sources give equal libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WALKS = r'''
import hashlib, json, random, re
from constrain import Style, Vocabulary, compile

TEXTS = """{"name": "Ada", "tags": ["x", "yy"], "size": -12.50e+3, "when": "2024-02-29T12:00:00Z"} true false null
    \\u00e9 \\n éü€ 😀 https://a.example/b?c=1 ","}]{[ ": ": {"a":1,"b":2}} 0.125 100 9999
    SELECT a FROM t WHERE b = 1; def f(x):\n        return x"""
WORDS = sorted({TEXTS[i : i + n].encode() for n in (2, 3, 5, 8) for i in range(0, len(TEXTS) - n)})
VOCABULARY = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + WORDS + [None], eos_ids=[256 + len(WORDS)])
MEMBERS = {"a": {"type": "integer", "multipleOf": 7}, "b": {"type": "string", "maxLength": 9}}
ITEM = {"type": "object", "properties": MEMBERS, "required": ["b"], "additionalProperties": {"enum": [1, "two", None]}}
AGE = {"type": "integer", "minimum": 0, "maximum": 120}
SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string"}, "age": AGE}, "required": ["name"]},
    {"type": "array", "items": ITEM, "minItems": 1, "uniqueItems": True},
    {"type": "object", "patternProperties": {"^x[0-9]*$": {"type": "number"}}, "minProperties": 2, "maxProperties": 9},
    {"anyOf": [{"type": "string", "pattern": "^(a|b)*c{2,4}$"}, {"format": "date-time"}, {"const": {"k": [1]}}]},
    {"$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 5}}, "$ref": "#/$defs/tree"},
    {"properties": {"a": ITEM, "b": {"contains": {"type": "null"}}}, "dependentRequired": {"a": ["b"]}},
    True,
]
SOURCES = [{"schema": one, "style": style} for one in SCHEMAS for style in (Style(), Style.any())]
SOURCES += [{"regex": r"(?i)[a-f]{3,}-\d+(é|😀)?"}, {"grammar": "sql"}, {"grammar": "python"}, {"grammar": "json"}]

total, steps, rng = hashlib.sha256(), 0, random.Random(5)
for source in SOURCES:
    constraint = compile(VOCABULARY, **source)
    for _ in range(3):
        matcher = constraint.matcher()
        for _ in range(40):
            mask = matcher.mask()
            total.update(mask.tobytes() + matcher.forced())
            total.update(bytes([matcher.is_complete, *sorted(matcher.next_bytes())]))
            steps += 1
            allowed = [32 * w + b for w in range(len(mask)) for b in range(32) if mask[w] >> b & 1]
            longer = [token for token in allowed if token >= 256]
            token = rng.choice(longer or allowed if rng.random() < 0.5 else allowed)
            if token == 256 + len(WORDS):
                break
            matcher.advance(token)
print(json.dumps([steps, total.hexdigest()]))
'''
NUMBA = """
import tests.numba_plugin
"""


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_masks_are_those_of_numbas_own_compilation() -> None:
    ours = run_python(WALKS)
    assert int(ours[1:].partition(",")[0]) > 500
    assert run_python(NUMBA + WALKS) == ours


REBUILD = """
import sys
from pathlib import Path
from constrain.kernels.jit.precompile import build_module
from constrain.kernels.jit.targets import TARGETS, emit_head, emit_level, link_for_host, link_for_release

try:
    import ziglang
except ImportError:
    link = link_for_host
else:
    link = lambda objects: link_for_release(target, objects)
target = TARGETS["linux-x86_64"]
library = link([emit_head(target, "0" * 32), emit_level(target, 1, build_module(lambda *_: None, int(sys.argv[1])))])
Path(sys.argv[2]).write_bytes(library or b"")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="links a library of Linux")
def test_equal_sources_give_equal_libraries(tmp_path: Path) -> None:
    """Byte for byte, in other processes with other hash seeds, and for any number of processes that compile."""
    libraries = []
    for parts in (1, 3):
        path = tmp_path / str(parts)
        code = f"import sys\nsys.argv[1:] = [{str(parts)!r}, {str(path)!r}]\n{REBUILD}"
        run_python(code, PYTHONHASHSEED=str(parts))
        libraries.append(path.read_bytes())
    assert len(libraries[0]) > 100_000, "there is a linker"
    assert sha256(libraries[0]).hexdigest() == sha256(libraries[1]).hexdigest()
