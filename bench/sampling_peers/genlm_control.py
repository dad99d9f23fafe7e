# mypy: ignore-errors
"""Run genlm-control on the model of `bench sampling_cost`: reads JSON from stdin, writes JSON to stdout.

    {"tokens": [hex], "tails": path of .npy rows, "sure": probability of the next token of the text,
     "jobs": [{"schema", "text": [ids]}], "particles", "max_tokens", "seconds": limit of a job}

Its JSON Schema potential is the condition of its AWRS sampler, its SMC runs the particles. The time spent in the model
is subtracted. Times are CPU times of the process.
"""

import asyncio
import json
import sys
from time import process_time


def main() -> None:
    """Read the jobs, write a list with figures or an error for each."""
    request = json.load(sys.stdin)
    import numpy as np
    import torch
    from genlm.control import AWRS, JsonSchema, Potential

    torch.set_num_threads(1)
    tokens = [bytes.fromhex(text) for text in request["tokens"]]
    tails = np.load(request["tails"])
    checks = 0

    class FavouredText(Potential):
        """A model that gives the next token of a text the probability request["sure"]; see `bench.sampling_cost`."""

        def __init__(self, vocabulary):
            super().__init__(vocabulary)
            self.text, self.spent = [], 0.0

        async def prefix(self, context):
            return 0.0

        async def complete(self, context):
            return 0.0

        async def logw_next(self, context):
            begin = process_time()
            position = len(context)
            row = tails[position % len(tails)].copy()
            favoured = self.text[position] if position < len(self.text) else len(tokens)
            row[favoured] = np.log(request["sure"])
            made = self.make_lazy_weights(row)
            self.spent += process_time() - begin
            return made

    model = FavouredText(tokens)
    found = []
    for job in request["jobs"]:
        model.text, model.spent = job["text"], 0.0
        try:
            condition = JsonSchema(json.loads(job["schema"])).coerce(model, f=b"".join)
            inner, checks = condition.prefix, 0

            async def counted(context, inner=inner):
                nonlocal checks
                checks += 1
                return await inner(context)

            condition.prefix = counted
            begin = process_time()
            sampler = AWRS(model, condition, seed=0, autobatch=False)
            made = asyncio.run(
                asyncio.wait_for(sampler.smc(request["particles"], 0.5, request["max_tokens"]), request["seconds"])
            )
            spent = process_time() - begin - model.spent
            steps = sum(len(context) for context in made.contexts)
            found.append({"seconds": spent, "steps": steps, "checks": checks})
        except Exception as error:
            found.append({"error": f"{type(error).__name__}: {str(error)[:200]}"})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
