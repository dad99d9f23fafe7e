"""Ask a vulnerability service about every package of the lock: `make audit`, or `python requirements/audit.py`.

Runs pip-audit on requirements/ci.txt and requirements/torch.txt. Exit code 0 if every package was looked up and none
has an advisory, 1 if one has, 2 if some could not be looked up (no network, or a mirror without advisories): what was
not looked up has not passed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LOCKS = (HERE / "ci.txt", HERE / "torch.txt")
SERVICES = ("pypi", "osv")
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 2
SHOWN = 10


def audit(service: str, locks: Sequence[Path]) -> tuple[dict[str, Any] | None, str]:
    """pip-audit's report, or None and what it said."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--vulnerability-service",
        service,
        "--require-hashes",
        "--disable-pip",
        "--progress-spinner",
        "off",
        "--format",
        "json",
    ]
    for lock in locks:
        command += ["--requirement", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None, (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return report, ""


def verdict(report: dict[str, Any]) -> tuple[int, list[str]]:
    """The exit code of a report, and the lines that explain it."""
    packages = report["dependencies"]
    bad = [
        f"{one['name']} {one['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'no release'}"
        for one in packages
        for known in one.get("vulns", ())
    ]
    unknown = [one["name"] for one in packages if "skip_reason" in one]
    if bad:
        return VULNERABLE, bad
    if unknown or not packages:
        more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
        return UNKNOWN, [
            f"{len(unknown)} of {len(packages)} packages could not be looked up: {', '.join(unknown[:SHOWN])}{more}"
        ]
    return CLEAN, [f"{len(packages)} packages, no known vulnerability"]


def main() -> int:
    """Ask one service after the other until one knows all packages."""
    code, lines = UNKNOWN, ["no service was asked"]
    for service in SERVICES:
        report, said = audit(service, LOCKS)
        code, lines = verdict(report) if report is not None else (UNKNOWN, [f"no answer: {said[:200]}"])
        print("\n".join(f"{service}: {line}" for line in lines))
        if code != UNKNOWN:
            return code
    print("audit: NOT DONE. No vulnerability service could be asked about all packages; run it where one is reachable.")
    return code


if __name__ == "__main__":
    sys.exit(main())
