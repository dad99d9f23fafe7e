"""`PlaygroundService`: answers the requests of the page, within the limits of the server that it is a part of.

Constraints are compiled, and texts inspected, in the threads of the server's CompilePool, under its budgets; so sources
that take long delay no one else. What runs the model does so in a few threads of its own: a job that waits for the
model would occupy a place in the pool for as long. The rows of the model are computed in the batches of the Engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..base.version import __version__
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..generation.generation_arguments import ConstraintRequest
from ..generation.inference_engine import Engine
from ..generation.model_preparation import PromptOptions, prepare_prompt
from ..integrations.transformers_models import LoadedModel
from ..serving.answer_call import AnswerCall
from ..serving.operations import Operations
from ..serving.request_errors import RequestError, locate_errors
from ..vocabulary.vocabulary import Vocabulary
from .model_jobs import ModelJobs
from .sampler_rounds import COMPARED_SAMPLERS, SamplerRounds, compute_law
from .source_reading import SOURCE_KINDS, PlaygroundSource
from .step_report import report_step
from .text_inspection import inspect_text

__all__ = ["MOST_DRAWS", "MOST_TEXT", "PlaygroundService"]

MODEL_THREADS = 4
"""Requests of the page that run the model at the same time; others wait, as far as the queue of the server allows."""
MOST_TEXT = 1 << 15
"""Maximum number of bytes of a text that is inspected."""
MOST_DRAWS = 512
"""Maximum number of draws of a request."""
ROUND = 8
"""Draws of a round, after which the estimate is sent."""
WIDTH = 8
"""Texts whose keys and values are kept while a sampler runs."""


class PlaygroundService:
    """The playground of a server.

    Parameters
    ----------
    operations : Operations
        Limits and queue of the server.
    engine : Engine or None
        The model; None for a page without one, on which texts are inspected byte by byte.
    """

    def __init__(self, operations: Operations, engine: Engine | None) -> None:
        self.operations, self.engine = operations, engine
        self.vocabulary = Vocabulary.bytes() if engine is None else engine.vocabulary
        self.threads = ThreadPoolExecutor(MODEL_THREADS, thread_name_prefix="constrain-playground")

    def describe(self) -> dict[str, Any]:
        """Return what the page has to know of the server."""
        settings = self.operations.settings
        return {
            "version": __version__, "model": None if self.engine is None else settings.model_name,
            "vocabulary": self.vocabulary.size, "samplers": list(COMPARED_SAMPLERS),
            "kinds": {kind: list(options) for kind, options in SOURCE_KINDS.items()},
            "limits": {
                "text": MOST_TEXT, "source": settings.max_schema_bytes, "draws": MOST_DRAWS,
                "tokens": settings.max_tokens,
            },
        }  # fmt: skip

    async def inspect(self, source: PlaygroundSource, text: str) -> dict[str, Any]:
        """Return what `inspect_text` returns. Raise RequestError if the source or the text is refused."""
        if len(text.encode()) > MOST_TEXT:
            raise RequestError(f"the text has more than {MOST_TEXT:,} bytes", "/text", code="limit_exceeded")
        with self.admit(source):
            return await asyncio.to_thread(lambda: inspect_text(self.compile(source), text))

    async def complete(self, source: PlaygroundSource, text: str) -> dict[str, Any]:
        """Return a shortest completion of a text: {"completion": text}, null if there is none of moderate length."""
        with self.admit(source):
            return await asyncio.to_thread(self.find_completion, source, text)

    def find_completion(self, source: PlaygroundSource, text: str) -> dict[str, Any]:
        """Return a shortest completion, see `complete`. Raise RequestError if the text is not accepted."""
        matcher = self.compile(source).matcher()
        with locate_errors("/text"):
            matcher.advance_bytes(text.encode())
        found = matcher.shortest_completion(MOST_TEXT)
        return {"completion": None if found is None else found.decode("utf-8", "replace")}

    async def step(
        self, source: PlaygroundSource, prompt: str, tokens: Sequence[int], bars: int, seed: int
    ) -> dict[str, Any]:
        """Return what `report_step` returns."""
        rng = np.random.default_rng([seed, len(tokens)])

        def report() -> dict[str, Any]:
            with locate_errors("/tokens"):
                return report_step(jobs.lm, constraint, tokens, bars=bars, rng=rng)

        with self.admit(source):
            constraint, ids = await asyncio.to_thread(self.prepare, source, prompt)
            with self.open_model(ids, 1) as jobs:
                return await jobs.run(report)

    async def law(self, source: PlaygroundSource, prompt: str) -> dict[str, Any]:
        """Return what `compute_law` returns."""
        with self.admit(source):
            constraint, ids = await asyncio.to_thread(self.prepare, source, prompt)
            with self.open_model(ids, WIDTH) as jobs:
                return await jobs.run(partial(compute_law, jobs.lm, constraint))

    async def sample(
        self, source: PlaygroundSource, prompt: str, sampler: str, draws: int, max_tokens: int, seed: int
    ) -> AsyncGenerator[Any, None]:
        """Yield the state of a sampler after each round (`SamplerRounds.run`), until it has drawn enough."""
        with self.admit(source):
            constraint, ids = await asyncio.to_thread(self.prepare, source, prompt)
            with self.open_model(ids, WIDTH) as jobs:
                rounds = SamplerRounds(jobs.lm, constraint, sampler, np.random.default_rng(seed), max_tokens)
                for done in range(0, draws, ROUND):
                    with locate_errors("/sampler"):
                        yield await jobs.run(partial(rounds.run, min(ROUND, draws - done)))

    @contextmanager
    def admit(self, source: PlaygroundSource) -> Iterator[None]:
        """Occupy a place in the queue of the server. Raise RequestError if the source is too long or it is full."""
        call = AnswerCall((), 1, {"grammar": source.text}, "/source/text")
        with self.operations.admit(call):
            yield

    def compile(self, source: PlaygroundSource) -> Constraint:
        """Return the constraint of a source. Raise RequestError at its place if it is refused."""
        limits = self.operations.limits
        with locate_errors("/source/text"):
            return compile(self.vocabulary, grammar=source.make_form(limits), limits=limits)

    def prepare(self, source: PlaygroundSource, prompt: str) -> tuple[Constraint, Sequence[int]]:
        """Return the constraint, and the token ids of the prompt. Raise RequestError if either is refused."""
        engine, constraint = self.require_engine(), self.compile(source)
        if not isinstance(engine.model, LoadedModel):  # it holds its own prompt
            return constraint, ()
        request = ConstraintRequest(**source.show(self.operations.limits))
        with locate_errors("/prompt"):
            ids = prepare_prompt(engine.model, prompt, request, PromptOptions()).encode()
        most = self.operations.settings.max_prompt_tokens
        if len(ids) > most:
            raise RequestError(
                f"the prompt has {len(ids):,} tokens, and this server allows at most {most:,}", "/prompt",
                code="limit_exceeded",
            )  # fmt: skip
        return constraint, ids

    def require_engine(self) -> Engine:
        """Return the Engine. Raise RequestError if the page has no model."""
        if self.engine is None:
            raise RequestError(
                "this playground runs without a model", code="no_model", hint="pip install 'constrain-lm[transformers]'"
            )
        return self.engine

    def open_model(self, prompt: Sequence[int], width: int) -> ModelJobs:
        """Return the model after a prompt, for jobs in threads."""
        return ModelJobs(self.require_engine().open_model(prompt, width), self.threads)
