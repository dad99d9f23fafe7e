"""Names of models that are on no disk: mistyped ones are refused at once, before torch or the network is touched.

A name is "demo", a folder, or an id on the hub. What is no folder, is not kept on this disk by huggingface_hub and is
similar to "demo", to a folder with a model in the working directory or to one beside the given path, is a mistyped
name. Only other names that have the form of an id are asked of the hub, which is logged (`model_hub`).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from ..base.errors import ConstrainError, shorten_text
from .model_hub import is_hub_id

__all__ = ["MODELS", "check_model_name", "find_near_models"]

MODELS = (
    'A model is "demo", a folder with config.json and weights (*.safetensors), or a hub id such as owner/name. '
    "One behind an API is called by constrain.generate_remote."
)
MOST_ENTRIES = 2_000
"""Most entries of a folder among which similar names are looked for."""
SIMILAR = 0.72
MODEL_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "params.json")


def check_model_name(
    name: str, kind: type[ConstrainError] = ConstrainError, hint: str = MODELS, what: str = "model folder"
) -> None:
    """Raise an error of `kind` unless a name, which is no file or folder, may be asked of the hub.

    what: what there is none of. The message has the names of similar models on this disk.
    """
    if is_hub_id(name) and is_on_disk(name):
        return
    if name.lower().endswith((".gguf", ".ggml")):
        raise kind(
            f"{shorten_text(repr(name))} is a file of llama.cpp, which no {what} is",
            hint=f"Load it with llama-cpp-python, and see constrain.plugins.llama_cpp_processor. {hint}",
        )
    near = find_near_models(name)
    if near:
        meant = " or ".join(f'"{shorten_text(one, 100)}"' for one in near)
        other = " If it is on the hub, give owner/name." if "/" not in name and is_hub_id(name) else ""
        raise kind(f"there is no model {shorten_text(repr(name))}", hint=f"Did you mean {meant}?{other} {hint}")
    if not is_hub_id(name):
        raise kind(
            f"there is no {what} {shorten_text(repr(name))}, and the name has not the form of a hub id", hint=hint
        )


def find_near_models(name: str) -> list[str]:
    """Return up to three names of models on this disk that are similar to a name: "demo", and folders with a model."""
    if len(name) > 300 or "\0" in name:
        return []
    path = Path(name)
    outer, _, last = name.rstrip("/").rpartition("/")
    known = {"demo": "demo"} if not outer else {}
    try:
        folder = path.parent.expanduser()
        if folder.is_dir():
            for entry in islice(folder.iterdir(), MOST_ENTRIES):
                if entry.is_dir() and any((entry / file).is_file() for file in MODEL_FILES):
                    known[entry.name] = f"{outer}/{entry.name}" if outer or name.startswith("/") else entry.name
    except (OSError, RuntimeError):  # a folder that may not be read; no home folder
        pass
    folded = {one.casefold(): one for one in known}
    similar = get_close_matches(last.casefold(), folded, 3, SIMILAR)
    return [known[folded[one]] for one in similar if is_similar(last.casefold(), one)]


def is_similar(given: str, known: str) -> bool:
    """Return whether two names may be the same, mistyped. Other versions and sizes of a model are other models."""
    if re.findall("[0-9]+", given) != re.findall("[0-9]+", known) and sum(map(str.isdigit, given + known)) > 0:
        return sorted(re.sub("[^0-9]", "", given)) == sorted(re.sub("[^0-9]", "", known))
    return True


def is_on_disk(name: str) -> bool:
    """Return whether huggingface_hub keeps files of a model on this disk."""
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError:
        return False
    return (Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir()
