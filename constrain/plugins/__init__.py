"""Plug-ins: constraints in the engines that people run, one file for each engine.

    llama_cpp_processor        llama-cpp-python: a logits processor, and `generate_with_llama`
    mlx_processor              MLX: logits processors for single texts and for batches
    vllm_v1, vllm_v2           vLLM: a logits processor for each of its two model runners
    sglang_backend             SGLang: a grammar backend
    transformers_sampling      transformers: our samplers as `custom_generate=` of `model.generate`
    continuous_batching        transformers: masks in continuous batching

A module imports its engine when it is loaded or first used, and nothing here is imported by `import constrain`. The
engines differ in how they report the tokens of a text; `request_matcher.RequestMatcher` follows them, and every mask
comes from there. Where an engine cannot report an error, a plug-in fails closed: it allows only end tokens.
"""

from __future__ import annotations

__all__: list[str] = []
