"""Build a release and try it as a user would: `make release`, or `python requirements/release.py`. Nothing is uploaded.

    1  dist/ gets the source distribution and the wheel, and the wheel is built from the source distribution
    2  the metadata and the README are checked as a package index does
    3  the contents are listed, with their sizes; a wheel of 15 MB or more is refused
    4  the wheel is installed in empty environments, alone and with extras, and used there
    5  dist/release-notes.md gets the entry of this version in CHANGELOG.md

Needs the packages build and twine. Exit code 0 if everything passed, 1 if a step failed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from release_uses import USES, try_use

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 15_000_000
"""Maximum size of a wheel, in bytes."""
REQUIRED = (
    "constrain/demo/model.safetensors", "constrain/demo/tokenizer.json", "constrain/grammars/json.lark",
    "constrain/py.typed", "constrain/kernels/masks.py",
)  # fmt: skip
"""Files that a wheel must have although no import would miss them at once."""
LIBRARIES = tuple(
    f"constrain/kernels/libraries/{name}.so"
    for name in ("linux-x86_64", "linux-aarch64", "darwin-arm64", "darwin-x86_64")
)
"""Compiled kernels, which `make kernels` builds before."""
FORBIDDEN = (".nbi", ".nbc", ".objects", ".pyc", ".partial.json")
"""Endings of files that caches leave, and that no distribution may have."""


class ReleaseError(Exception):
    """A step of the release failed."""


def print_step(text: str) -> None:
    """Print what is being done."""
    print(f"release: {text}", flush=True)


def run_step(*command: str) -> None:
    """Run a command. Raise ReleaseError if it fails."""
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        raise ReleaseError(f"{' '.join(command)} failed with code {code}")


def build_distributions(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it, in place of earlier ones. Return both paths."""
    for old in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        old.unlink()
    run_step(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    [source], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


def list_contents(path: Path) -> dict[str, int]:
    """Return the files of a wheel or source distribution, each with its size in bytes."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {one.filename: one.file_size for one in archive.infolist() if not one.is_dir()}
    with tarfile.open(path) as archive:
        return {one.name.partition("/")[2]: one.size for one in archive.getmembers() if one.isfile()}


def print_contents(path: Path, files: dict[str, int]) -> None:
    """Print how many files a distribution has, and how large each part of it is."""
    sizes, counts = Counter[str](), Counter[str]()
    for name, size in files.items():
        parts = name.split("/")
        part = "/".join(parts[:2]) if parts[0] == "constrain" and len(parts) > 2 else parts[0]
        sizes[part] += size
        counts[part] += 1
    print(f"\n{path.name}: {path.stat().st_size:,} bytes, {len(files):,} files of {sum(files.values()):,} bytes")
    for part, size in sizes.most_common():
        print(f"  {part:32} {counts[part]:5} {size:12,}")


def check_contents(path: Path, files: Iterable[str]) -> None:
    """Raise ReleaseError if a distribution is too large, lacks a file, or has one that a cache left."""
    files = set(files)
    if path.suffix == ".whl" and path.stat().st_size >= MOST_BYTES:
        raise ReleaseError(f"{path.name} has {path.stat().st_size:,} bytes, and the limit is {MOST_BYTES:,}")
    if missing := [name for name in (*REQUIRED, *LIBRARIES) if name not in files]:
        raise ReleaseError(f"{path.name} lacks {', '.join(missing)}")
    if left := sorted(name for name in files if name.endswith(FORBIDDEN)):
        raise ReleaseError(f"{path.name} has files of a cache: {', '.join(left[:5])}")


def find_notes(changelog: str, version: str) -> str:
    """Return the entry of a version in the changelog: that of its own heading, or of "Unreleased".

    Raise ReleaseError if there is neither, or if it is empty.
    """
    entries = re.split(r"^## ", changelog, flags=re.M)[1:]
    by_name = {entry.partition("\n")[0].strip(" []"): entry.partition("\n")[2].strip() for entry in entries}
    for name, text in by_name.items():
        if text and (name == "Unreleased" or re.match(rf"\[?{re.escape(version)}\b", name)):
            return text
    raise ReleaseError(f"CHANGELOG.md has no entry for {version}, and none that is unreleased")


def write_notes(folder: Path, wheel: Path) -> Path:
    """Write the release notes of the version of a wheel, with how to install it. Return their path."""
    version = wheel.name.split("-")[1]
    text = find_notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version)
    install = f'```console\n$ pip install "constrain-lm[transformers]=={version}"\n```'
    path = folder / "release-notes.md"
    path.write_text(f"# constrain {version}\n\n{install}\n\n{text}\n", "utf-8")
    return path


def main() -> int:
    """Run the steps. Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder for the results")
    parser.add_argument("--uses", default=",".join(USES), help=f"what to try, of {', '.join(USES)}")
    options = parser.parse_args()
    try:
        print_step("1/5 build")
        source, wheel = build_distributions(options.dist)
        print_step("2/5 metadata")
        run_step(sys.executable, "-m", "twine", "check", "--strict", str(source), str(wheel))
        print_step("3/5 contents")
        for path in (source, wheel):
            files = list_contents(path)
            print_contents(path, files)
            check_contents(path, files)
        print_step("4/5 use in empty environments")
        for name in filter(None, options.uses.split(",")):
            run_step_use(name, wheel)
        print_step(f"5/5 {write_notes(options.dist, wheel)}")
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print_step("done; nothing was uploaded")
    return 0


def run_step_use(name: str, wheel: Path) -> None:
    """Try a use of the wheel. Raise ReleaseError if it fails."""
    print_step(f"  {name}: {USES[name].summary}")
    if (code := try_use(USES[name], wheel)) != 0:
        raise ReleaseError(f"the use {name} of {wheel.name} failed with code {code}")


if __name__ == "__main__":
    sys.exit(main())
