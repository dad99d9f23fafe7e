#!/usr/bin/env bash
# Write requirements/ci.txt anew: `requirements/lock.sh` (needs uv). Every package of `.[dev]` but torch, with hashes.
#
# One lock holds for Python 3.10 to 3.13 (markers) and every platform (hashes of all files). torch has a lock of its own,
# requirements/torch.txt: its public wheels depend on gigabytes of CUDA libraries, which CI neither needs nor installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
uv="${UV:-uv}"
cuda=$("$uv" pip compile --universal --python-version 3.10 --quiet -c constraints.txt --extra dev pyproject.toml |
    grep -oE '^(nvidia[a-z0-9-]*|cuda[a-z0-9-]*|triton)==' | tr -d '=' | sort -u)
options=(--no-emit-package torch --no-emit-package constrain)
for name in $cuda; do options+=(--no-emit-package "$name"); done
"$uv" pip compile --universal --python-version 3.10 --generate-hashes --quiet --no-annotate -c constraints.txt \
    --custom-compile-command requirements/lock.sh "${options[@]}" --extra dev pyproject.toml requirements/tools.in \
    -o requirements/ci.txt
