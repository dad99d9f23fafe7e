"""What `make release` does with a wheel in empty environments: the first minutes of a user, each as a script."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["USES", "Use", "try_use"]

ROOT = Path(__file__).resolve().parent.parent


class Use(NamedTuple):
    """A use of the wheel: what it shows, the extras to install, and the Python code to run afterwards."""

    summary: str
    extras: str
    code: str


MASKS = """
import sys, constrain
mask = constrain.compile(constrain.Vocabulary.bytes(), schema={"const": "a"}).matcher().mask()
allowed = [chr(token) for token in range(256) if mask[token // 32] >> token % 32 & 1]
assert allowed == ['"'], allowed
assert not {"numba", "torch", "transformers", "pydantic", "jsonschema"} & set(sys.modules)
print("constrain", constrain.__version__, "imports without extras; the mask allows", allowed)
try:
    constrain.load_model("demo")
except constrain.ConstrainError as error:
    assert 'pip install "constrain-lm[transformers]"' in str(error), error
    print("without torch:", str(error).replace(chr(10), " "))
"""

GENERATE = """
import json, subprocess, sys
from pathlib import Path
script = str(Path(sys.executable).with_name("constrain"))
schema = '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}'
done = subprocess.run([script, "generate", "--schema", schema, "--seed", "1"], capture_output=True, text=True)
print(done.stderr.strip())
assert done.returncode == 0, done.stderr
assert type(json.loads(done.stdout)["age"]) is int, done.stdout
print(done.stdout.strip())
version = subprocess.run([script, "--version"], capture_output=True, text=True)
assert version.stdout.startswith("constrain "), version
"""

SERVE = """
import json, subprocess, sys, threading
from pathlib import Path
from urllib.request import Request, urlopen
script = str(Path(sys.executable).with_name("constrain"))
server = subprocess.Popen([script, "serve", "--port", "0", "--log-format", "none"], stderr=subprocess.PIPE, text=True)
try:
    url = next(line.split()[-1] for line in server.stderr if "base URL" in line)
    threading.Thread(target=server.stderr.read, daemon=True).start()
    body = {"model": "demo", "messages": [{"role": "user", "content": "Yes or no?"}], "seed": 1,
            "structured_outputs": {"choice": ["yes", "no"]}}
    request = Request(url + "/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    answer = json.load(urlopen(request, timeout=120))["choices"][0]["message"]["content"]
    assert answer in ("yes", "no"), answer
    print("constrain serve answers", answer)
finally:
    server.terminate()
    server.wait(30)
"""

USES = {
    "masks": Use("the wheel alone: import, compile, mask", "", MASKS),
    "generate": Use("[transformers]: constrain generate", "[transformers]", GENERATE),
    "serve": Use("[serve]: constrain serve, and a request", "[serve]", SERVE),
}


def try_use(use: Use, wheel: Path) -> int:
    """Install a wheel with extras in an empty environment, run the code of a use there, and return its exit code.

    The versions are those that constraints.txt allows. The environment has no numba, so that the compiled kernels of
    the wheel are used, and is removed afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="constrain-release-") as folder:
        python = str(Path(folder, "venv", "bin", "python"))
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        install = ["-m", "pip", "install", "--disable-pip-version-check", "-q", "-c", str(ROOT / "constraints.txt")]
        commands = (
            [sys.executable, "-m", "venv", str(Path(folder, "venv"))],
            [python, *install, f"constrain-lm{use.extras} @ {wheel.resolve().as_uri()}"],
            [python, "-m", "pip", "check", "--disable-pip-version-check"],
            [python, "-c", use.code],
        )
        for command in commands:
            code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
            if code:
                return code
    return 0
