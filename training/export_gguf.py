"""Write the embedded model as a GGUF file, the format of llama.cpp: `python -m training.export_gguf demo.gguf`.

All tensors are float32 (15 MB), so that llama.cpp computes the logits of transformers up to rounding. GGUF stores the
query and key projections with the halves of each head's rotary dimensions interleaved, where transformers keeps them
one after the other; everything else is copied. Needs the package gguf.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from constrain.demo import model_folder

__all__ = ["export_gguf", "main"]

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""Kinds of tokens in GGUF (gguf.TokenType)."""
LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Names of a layer's tensors in transformers and in GGUF."""


def export_gguf(path: Path, folder: Path | None = None) -> Path:
    """Write the model in `folder`, by default the embedded one, a Llama with tied embeddings, to `path`."""
    import gguf

    folder = model_folder() if folder is None else folder
    config = json.loads((folder / "config.json").read_text("utf-8"))
    writer = gguf.GGUFWriter(path, "llama")
    write_sizes(writer, config)
    write_tokens(writer, folder, config)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, values in read_tensors(folder / "model.safetensors").items():
        target = rename_tensor(name)
        kind = target.split(".")[-2]
        writer.add_tensor(target, interleave_halves(values, heads[kind]) if kind in heads else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read_tensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the tensors of a safetensors file as float32; those in it are bfloat16, the upper half of a float32.

    The format: the length of a JSON header in 8 bytes, the header with dtype, shape and offsets, the data.
    """
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "BF16":
            raise ValueError(f"{name} is {entry['dtype']}: only BF16 is read")
        first, end = entry["data_offsets"]
        halves = np.frombuffer(data[start + first : start + end], "<u2").astype(np.uint32)
        tensors[name] = (halves << 16).view(np.float32).reshape(entry["shape"])
    return tensors


def write_sizes(writer: Any, config: dict[str, Any]) -> None:
    """Write the hyperparameters."""
    rope = config.get("rope_parameters") or config
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
    writer.add_rope_freq_base(float(rope.get("rope_theta", 10_000.0)))
    writer.add_vocab_size(config["vocab_size"])


def write_tokens(writer: Any, folder: Path, config: dict[str, Any]) -> None:
    """Write the byte-level BPE of tokenizer.json: tokens, kinds, merges and special ids."""
    document = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    model = document["model"]
    pieces = {index: piece for piece, index in model["vocab"].items()}
    kinds = dict.fromkeys(pieces, NORMAL)
    for added in document["added_tokens"]:
        pieces[added["id"]] = added["content"]
        kinds[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([pieces[index] for index in range(len(pieces))])
    writer.add_token_types([kinds[index] for index in range(len(pieces))])
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in model["merges"]])
    begin, end = config.get("bos_token_id"), config["eos_token_id"]
    if begin is not None:
        writer.add_bos_token_id(begin)
    writer.add_eos_token_id(end if isinstance(end, int) else end[0])
    writer.add_add_bos_token(False)


def rename_tensor(name: str) -> str:
    """Return the name in GGUF of a tensor of transformers."""
    fixed = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in fixed:
        return fixed[name]
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{LAYER_TENSORS[part.removesuffix('.weight')]}.weight"


def interleave_halves(weight: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Return rows of a projection reordered, in each head from (half, dimension) to (dimension, half)."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m training.export_gguf", description="The embedded model as GGUF.")
    parser.add_argument("path", type=Path, help="file to write")
    print(export_gguf(parser.parse_args(arguments).path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
