"""Other weights of the embedded model.

`demo-0.1.0` has the weights of version 0.1.0, before the second training run, which some committed results depend on.
It is part of the repository and not of the wheel.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["BASELINE", "CHECKPOINTS", "find_checkpoint", "load_checkpoint"]

BASELINE = "demo-0.1.0"
"""The checkpoint of benches whose committed figures depend on the texts of the model."""
CHECKPOINTS = ("demo", BASELINE)


def find_checkpoint(name: str) -> Path:
    """Return the folder of a checkpoint. name: one of CHECKPOINTS, or a folder; "demo" is that of the wheel.

    Raises FileNotFoundError if there is no such model.
    """
    from constrain import demo

    own = Path(__file__).parent / name
    folder = demo.model_folder() if name == "demo" else own if name in CHECKPOINTS else Path(name)
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{name} is not one of {', '.join(CHECKPOINTS)}, and not a folder with a config.json")
    return folder


@lru_cache(maxsize=2)
def load_checkpoint(name: str = BASELINE) -> Any:
    """Return a checkpoint as a `LoadedModel` that composes prompts as "demo" does."""
    from constrain import demo, load_model
    from constrain.integrations.transformers_models import as_loaded

    plain = load_model(find_checkpoint(name))
    return as_loaded(plain.model, plain.tokenizer, name=name, compose=demo.compose_prompt)
