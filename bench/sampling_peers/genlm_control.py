# mypy: ignore-errors
"""genlm-control under the same model rows: run by its own interpreter, JSON in on stdin, JSON out on stdout.

    {"tokens": [hex], "floor": path of .npy rows, "jobs": [{"schema", "teacher": [ids]}], "particles", "max_tokens"}

Its JSON-Schema potential is the condition of its AWRS sampler, its SMC runs the particles. The model is a potential
whose rows are those of `bench sampling_cost`; the time spent in it is taken off. Times are of the process's CPU.
"""

import asyncio
import json
import sys
from time import process_time


def main() -> None:
    asked = json.load(sys.stdin)
    import numpy as np
    import torch
    from genlm.control import AWRS, JsonSchema, Potential

    torch.set_num_threads(1)
    tokens = [bytes.fromhex(text) for text in asked["tokens"]]
    floor = np.load(asked["floor"])
    checks = 0

    class Teacher(Potential):
        """p(teacher's token at this place) = asked["sure"], the rest by the floor."""

        def __init__(self, vocabulary):
            super().__init__(vocabulary)
            self.teacher, self.spent = [], 0.0

        async def prefix(self, context):
            return 0.0

        async def complete(self, context):
            return 0.0

        async def logw_next(self, context):
            begin = process_time()
            place = len(context)
            row = floor[place % len(floor)].copy()
            here = self.teacher[place] if place < len(self.teacher) else len(tokens)
            row[here] = np.log(asked["sure"])
            made = self.make_lazy_weights(row)
            self.spent += process_time() - begin
            return made

    model = Teacher(tokens)
    found = []
    for job in asked["jobs"]:
        model.teacher, model.spent = job["teacher"], 0.0
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
                asyncio.wait_for(sampler.smc(asked["particles"], 0.5, asked["max_tokens"]), asked["seconds"])
            )
            spent = process_time() - begin - model.spent
            steps = sum(len(context) for context in made.contexts)
            found.append({"seconds": spent, "steps": steps, "checks": checks})
        except Exception as error:
            found.append({"error": f"{type(error).__name__}: {str(error)[:200]}"})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
