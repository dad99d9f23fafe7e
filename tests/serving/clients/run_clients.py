"""Run the scenarios of every client against a live server of the embedded model: `make clients`.

Each client is installed in a virtual environment of its own below `.venv/clients`, since their dependencies differ.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import constrain
from constrain.serving.application import create_app
from tests.serving.live_server import serve_live

FOLDER = Path(__file__).resolve().parent
ENVIRONMENTS = FOLDER.parents[2] / ".venv" / "clients"
CLIENTS = {
    "openai_client": ["openai"],
    "instructor_client": ["instructor"],
    "pydantic_ai_client": ["pydantic-ai-slim[openai]"],
    "litellm_client": ["litellm", "mcp"],  # litellm imports mcp for every completion
}


def install_client(name: str) -> Path:
    """Return the Python of an environment with a client, made if it is not there."""
    python = ENVIRONMENTS / name / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENTS / name, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *CLIENTS[name]], check=True)
    return python


def main(names: list[str]) -> int:
    """Run the clients of these names, by default all; return the number that failed."""
    pythons = {name: install_client(name) for name in names or CLIENTS}
    with constrain.Engine("demo") as engine, serve_live(create_app(engine)) as url:
        codes = {name: subprocess.call([python, FOLDER / f"{name}.py", url]) for name, python in pythons.items()}
    failed = [name for name, code in codes.items() if code]
    print(f"{len(codes) - len(failed)} of {len(codes)} clients passed{''.join(f'; {name} failed' for name in failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
