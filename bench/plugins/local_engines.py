"""The engines that run on a CPU: the embedded model inside llama-cpp-python, MLX and transformers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .tally import MaskCheck, PluginEngine

__all__ = ["Llama", "Mlx", "Transformers"]

PROMPT = "Answer:\n"
CONTEXT = 1024


class Llama(PluginEngine):
    """llama-cpp-python, with the embedded model as GGUF."""

    name, package, where = "llama", "llama_cpp", "in the package"

    def load(self) -> Any:
        """See `PluginEngine`."""
        from llama_cpp import Llama as Loaded

        from constrain.plugins.llama_cpp_processor import read_llama_vocabulary
        from training.export_gguf import export_gguf

        with tempfile.TemporaryDirectory() as folder:
            path = export_gguf(Path(folder) / "demo.gguf")
            self.llama = Loaded(str(path), n_ctx=CONTEXT, verbose=False)
        return read_llama_vocabulary(self.llama)

    def answer(self, constraint: Any, source: dict[str, Any], max_tokens: int | None, seed: int) -> str | None:
        """See `PluginEngine`."""
        from constrain.plugins.llama_cpp_processor import generate_with_llama

        made = generate_with_llama(self.llama, PROMPT, constraint, max_tokens=max_tokens, temperature=1.0, seed=seed)
        choice = made["choices"][0]
        return str(choice["text"]) if choice["finish_reason"] == "stop" else None

    def compare(self, constraint: Any, source: dict[str, Any], tokens: int, seed: int, check: MaskCheck) -> None:
        """See `PluginEngine`."""
        from llama_cpp import LogitsProcessorList

        from constrain.plugins.llama_cpp_processor import LlamaConstraintProcessor

        processor, starts, errors = LlamaConstraintProcessor(constraint), [], []

        def look(ids: Any, scores: Any) -> Any:
            out = processor(ids, scores)
            starts.append(len(ids))
            try:
                check(ids[starts[0] :].tolist(), np.isfinite(out))
            except Exception as error:  # the callback would swallow it
                errors.append(error)
            return out

        self.llama.create_completion(
            PROMPT, max_tokens=tokens, temperature=1.0, seed=seed, logits_processor=LogitsProcessorList([look])
        )
        processor.check()
        if errors:
            raise errors[0]


class Mlx(PluginEngine):
    """mlx-lm; on Linux it computes on the CPU."""

    name, package, where = "mlx", "mlx_lm", "in the package"

    def load(self) -> Any:
        """See `PluginEngine`."""
        import mlx_lm

        from constrain.demo import model_folder
        from constrain.plugins.mlx_processor import read_mlx_vocabulary

        self.model, self.tokenizer = mlx_lm.load(str(model_folder()))
        return read_mlx_vocabulary(self.model, self.tokenizer)

    def answer(self, constraint: Any, source: dict[str, Any], max_tokens: int | None, seed: int) -> str | None:
        """See `PluginEngine`."""
        import mlx.core as mx
        from mlx_lm.sample_utils import make_sampler

        from constrain.plugins.mlx_processor import generate_with_mlx

        mx.random.seed(seed)
        return generate_with_mlx(
            self.model, self.tokenizer, PROMPT, constraint, max_tokens=max_tokens or 256, sampler=make_sampler(temp=1.0)
        )

    def compare(self, constraint: Any, source: dict[str, Any], tokens: int, seed: int, check: MaskCheck) -> None:
        """See `PluginEngine`."""
        import mlx.core as mx
        from mlx_lm import stream_generate
        from mlx_lm.sample_utils import make_sampler

        from constrain.plugins.mlx_processor import MlxConstraintProcessor

        processor, starts = MlxConstraintProcessor(constraint), []

        def look(ids: Any, logits: Any) -> Any:
            out = processor(ids, logits)
            starts.append(ids.size)
            check(np.array(ids).tolist()[starts[0] :], np.array(mx.isfinite(out[0])))
            return out

        mx.random.seed(seed)
        for _ in stream_generate(
            self.model, self.tokenizer, PROMPT, max_tokens=tokens, logits_processors=[look], sampler=make_sampler(1.0)
        ):
            pass


class Transformers(PluginEngine):
    """`model.generate` of transformers, with ConstraintLogitsProcessor."""

    name, package, where = "transformers", "transformers", "in the package"

    def load(self) -> Any:
        """See `PluginEngine`."""
        import torch
        import transformers

        from constrain import Vocabulary
        from constrain.demo import model_folder

        torch.set_num_threads(1)  # products this small only wait for each other, for minutes where cores are shared
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model_folder())
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder())
        self.prompt = self.tokenizer(PROMPT, return_tensors="pt")
        return Vocabulary.from_tokenizer(self.tokenizer, size=self.model.config.vocab_size)

    def answer(self, constraint: Any, source: dict[str, Any], max_tokens: int | None, seed: int) -> str | None:
        """See `PluginEngine`."""
        from constrain import ConstraintLogitsProcessor

        processor = ConstraintLogitsProcessor(constraint, model=self.model, max_new_tokens=max_tokens)
        ids = self.generate(processor, max_tokens, seed)
        ended = ids and ids[-1] in constraint.vocabulary.eos_ids
        return constraint.vocabulary.decode(ids) if ended else None

    def generate(self, processor: Any, tokens: int | None, seed: int) -> list[int]:
        """Return the new ids of one sampled row."""
        import torch

        torch.manual_seed(seed)
        out = self.model.generate(**self.prompt, max_new_tokens=tokens, do_sample=True, logits_processor=[processor])
        new: list[int] = out[0, self.prompt["input_ids"].shape[1] :].tolist()
        return new

    def compare(self, constraint: Any, source: dict[str, Any], tokens: int, seed: int, check: MaskCheck) -> None:
        """See `PluginEngine`."""
        from constrain import ConstraintLogitsProcessor

        processor = ConstraintLogitsProcessor(constraint, model=self.model)

        def look(ids: Any, scores: Any) -> Any:
            out = processor(ids, scores)
            check(ids[0, self.prompt["input_ids"].shape[1] :].tolist(), out[0].isfinite().numpy())
            return out

        self.generate(look, tokens, seed)
