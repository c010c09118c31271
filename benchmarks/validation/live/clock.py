"""``Validation`` within a live training loop, on the real clock."""

import time
from statistics import fmean, median
from typing import Any

from benchmarks.validation.live.programs import PROGRAMS
from benchmarks.validation.live.run import Run
from botorch_costly import Validation

OVERHEAD = 0.03


def trained(name: str, seed: int, epochs: int | None = None) -> dict[str, Any]:
    """Train a program with ``Validation`` in the loop; return what it took of the clock.

    Args:
        name: Name of the program.
        seed: Seed of data, weights and order.
        epochs: Length of the run, if it is to be shorter.
    """
    run = Run(PROGRAMS[name], seed)
    steps = run.epoch * (epochs or run.program.epochs)
    validation = Validation(OVERHEAD, examples=run.examples, steps=steps - 1, seed=seed)
    decisions, reading = [], 0.0
    began = time.perf_counter()
    for step in range(steps):
        loss = run.step()
        asked = time.perf_counter()
        is_due = validation.due(step, train_loss=loss)
        answered = time.perf_counter()
        decisions.append(answered - asked)
        if is_due:
            while examples := validation.examples:
                validation.tell(run.losses(examples))
            reading += time.perf_counter() - answered
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 3),
        "reading": round(reading / seconds, 5),
        "deciding": round(sum(decisions) / seconds, 5),
        "median_ms": round(1e3 * median(decisions), 4),
        "mean_ms": round(1e3 * fmean(decisions), 4),
        "examples": validation.counts["examples"],
        "digest": run.digest(),
    }
