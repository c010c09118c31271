"""What each rank of ``python -m benchmarks ddp`` runs: decisions shared by all ranks, and their times.

A round without training: the metric is a function of the configuration, of which each rank measures
a part. Written for each rank: its decisions, and milliseconds of each.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from botorch_costly import Decision, OnlineTuner, Real, SearchSpace
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.plain import as_number

SPACE = SearchSpace({name: Real(0.0, 1.0) for name in ("a", "b", "c", "d")})


class Timed(OnlineTuner):
    """A tuner that notes the milliseconds of its decisions."""

    own_ms: list[float]

    def ask(self) -> Decision:
        began = time.perf_counter()
        decision = super().ask()
        self.own_ms.append(1e3 * (time.perf_counter() - began))
        return decision


def measured(decision: Decision, rank: int) -> float:
    """Return the metric of a rank."""
    values = [as_number(name, value) for name, value in decision.config.items()]
    return -sum((value - 0.4) ** 2 for value in values) + 0.01 * rank


def play(rounds: int, seed: int) -> dict[str, Any]:
    """Return decisions and milliseconds of a run of this rank."""
    tuner = Timed(SPACE, rounds, seed=seed)
    tuner.own_ms = []
    shared = SharedTuner(tuner, timeout=300.0)
    decisions, ask_ms, mean_ms = [], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        decision = shared.ask()
        ask_ms.append(1e3 * (time.perf_counter() - began))
        decisions.append(decision.to_dict())
        if decision.query:
            began = time.perf_counter()
            reward = shared.mean(measured(decision, shared.ranks.rank))
            mean_ms.append(1e3 * (time.perf_counter() - began))
            shared.tell(decision, reward)
    return {"decisions": decisions, "ask": ask_ms, "mean": mean_ms, "own": tuner.own_ms}


def main() -> None:
    """Play, and write what happened to ``<folder>/<rank>.json``."""
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    said = play(rounds, seed)
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(said))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
