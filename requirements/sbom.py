"""Write a software bill of materials, CycloneDX 1.6: `make sbom`, or `python requirements/sbom.py OUT.json`.

It names what `pip install constrain-lm` brings along (and the extras that are asked for) in the versions that are
installed here, each with its licence, its dependencies, and the hashes of its files from the lock, if the lock has that
version.
The same environment gives the same text, but for its time, which SOURCE_DATE_EPOCH fixes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement

HERE = Path(__file__).resolve().parent
PROJECT = "constrain-lm"


def canonical(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(found: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What a package requires here: (name, extras)."""
    environment: dict[str, Any] = {**default_environment()}
    for text in found.requires or ():
        requirement = Requirement(text)
        wanted = [{**environment, "extra": extra} for extra in (*extras, "")]
        if requirement.marker is None or any(requirement.marker.evaluate(one) for one in wanted):
            yield canonical(requirement.name), frozenset(requirement.extras)


def closure(extras: frozenset[str]) -> tuple[dict[str, Distribution], dict[str, set[str]]]:
    """All installed packages that the project needs, and who needs whom."""
    packages: dict[str, Distribution] = {}
    edges: dict[str, set[str]] = {}
    todo = [(PROJECT, extras)]
    seen = set(todo)
    while todo:
        name, wanted = todo.pop()
        try:
            packages[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for need in needs(packages[name], wanted):
            edges.setdefault(name, set()).add(need[0])
            if need not in seen:
                seen.add(need)
                todo.append(need)
    return packages, edges


def locked() -> dict[tuple[str, str], list[str]]:
    """(name, version) -> SHA-256 of its files, from the locks."""
    out: dict[tuple[str, str], list[str]] = {}
    for path in (HERE / "ci.txt", HERE / "torch.txt"):
        current: list[str] = []
        for line in path.read_text("utf-8").splitlines():
            if match := re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", line):
                current = out.setdefault((canonical(match[1]), match[2]), [])
            current += re.findall(r"sha256:([0-9a-f]{64})", line)
    return out


def component(found: Distribution, hashes: list[str]) -> dict[str, Any]:
    """One package."""
    name, version = canonical(found.metadata["Name"]), found.version
    purl = f"pkg:pypi/{name}@{version}"
    about: Any = found.metadata
    licence = about.get("License-Expression") or (about.get("License") or "").strip().partition("\n")[0][:100]
    out: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence:
        expression = "License-Expression" in about
        out["licenses"] = [{"expression": licence}] if expression else [{"license": {"name": licence}}]
    if hashes:
        out["externalReferences"] = [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{name}/{version}/#files",
                "hashes": [{"alg": "SHA-256", "content": one} for one in sorted(hashes)],
            }
        ]
    return out


def bill(extras: frozenset[str]) -> dict[str, Any]:
    """The document."""
    packages, edges = closure(extras)
    hashes = locked()
    parts = {
        name: component(found, hashes.get((name, found.version.partition("+")[0]), []))
        for name, found in packages.items()
    }
    refs = {name: part["bom-ref"] for name, part in parts.items()}
    own = parts.pop(PROJECT)
    body = {
        "components": [parts[name] for name in sorted(parts)],
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted(refs[one] for one in edges.get(name, ()) if one in refs)}
            for name in sorted(refs)
        ],
    }
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0")) or int(datetime.datetime.now().timestamp())
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))}",
        "version": 1,
        "metadata": {
            "timestamp": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "component": {**own, "type": "library"},
            "properties": [
                {"name": "constrain:python", "value": sys.version.split()[0]},
                {"name": "constrain:extras", "value": ",".join(sorted(extras))},
            ],
        },
        **body,
    }


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--extras", default="transformers,types,tokenizers,validate,infer", help="of constrain")
    asked = parser.parse_args()
    made = bill(frozenset(filter(None, asked.extras.split(","))))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    print(f"{asked.out}: {len(made['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
