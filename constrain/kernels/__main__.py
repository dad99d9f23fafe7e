"""Writes the STAMP of every kernel file anew: `python -m constrain.kernels` after each edit here."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path

ROOM = Path(__file__).parent
STAMP = re.compile(r'^STAMP = "(.*)"$', re.M)


def imports(path: Path) -> set[Path]:
    """The kernel files that a file imports, directly or not."""
    found: set[Path] = set()
    todo = [path]
    while todo:
        for name in re.findall(r"^from \.(\w+) import", todo.pop().read_text(encoding="utf-8"), re.M):
            one = ROOM / f"{name}.py"
            if one not in found:
                found.add(one)
                todo.append(one)
    return found


def stamp(path: Path) -> str:
    """What the STAMP of a file has to be: a digest of what it imports, stamps left out."""
    digest = blake2b(digest_size=4)
    for one in sorted(imports(path)):
        digest.update(STAMP.sub("", one.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def stale() -> dict[Path, str]:
    """Files whose STAMP is not what it has to be, and what that is."""
    found = {}
    for path in sorted(ROOM.glob("*.py")):
        match = STAMP.search(path.read_text(encoding="utf-8"))
        if match and match.group(1) != stamp(path):
            found[path] = stamp(path)
    return found


if __name__ == "__main__":
    for path, text in stale().items():
        path.write_text(STAMP.sub(f'STAMP = "{text}"', path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{path.name}: {text}")  # noqa: T201
