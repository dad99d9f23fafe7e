"""Findings of fuzz targets: violated properties, with signatures that identify duplicates."""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

__all__ = ["Disagreement", "Finding", "build_finding", "save_finding", "build_signature"]

OURS = "constrain"


class Disagreement(AssertionError):
    """Two implementations disagree. rule: which two, and in which direction; the signature of the finding."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


@dataclass(frozen=True)
class Finding:
    """A violated property. kind: "disagreement", "error" (not a ConstrainError), "hang", "memory" or "crash".

    signature: equal for findings with the same cause, as far as one can tell. shown: the input. choices: the bytes
    from which the target's strategy draws that input again, in hex.
    """

    target: str
    kind: str
    signature: str
    detail: str
    shown: str
    choices: str = ""


def build_signature(error: BaseException) -> str:
    """Return the exception's type and the innermost place in our code, without line numbers."""
    if isinstance(error, Disagreement):
        return error.rule
    frames = [f"{Path(name).stem}.{function}" for name, function in list_library_frames(error.__traceback__)]
    return f"{type(error).__name__} in {frames[-1] if frames else 'the target'}"


def list_library_frames(trace: TracebackType | None) -> list[tuple[str, str]]:
    """Return (file, function) of the frames of the library, outermost first."""
    return [(one.filename, one.name) for one in traceback.extract_tb(trace) if f"/{OURS}/" in one.filename]


def build_finding(target: str, error: BaseException, shown: str, choices: bytes = b"") -> Finding:
    """Build the finding of an exception."""
    kind = (
        "disagreement" if isinstance(error, Disagreement) else "memory" if isinstance(error, MemoryError) else "error"
    )
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__)[-6:])
    return Finding(target, kind, build_signature(error), f"{error}\n\n{text}"[:6_000], shown[:20_000], choices.hex())


def save_finding(folder: Path, finding: Finding) -> Path | None:
    """Write a finding, unless one with its signature has an input at most as long. Return its path, or None."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{finding.target}-{finding.kind}-{finding.signature}".lower())[:120].strip("-")
    path = folder / f"{name}.json"
    if path.exists() and len(json.loads(path.read_text("utf-8"))["shown"]) <= len(finding.shown):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(finding), indent=1, ensure_ascii=True) + "\n", "utf-8")
    return path
