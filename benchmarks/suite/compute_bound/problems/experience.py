"""What a network knows that is fine-tuned later."""

from typing import Any

from benchmarks.suite.compute_bound.training import LongRun, Settings


def weights_after(run: LongRun, config: Settings, rounds: int) -> dict[str, Any]:
    """Return what a network knows after a run whose learning rate falls in the last two fifths."""
    for round in range(rounds):
        run.train_round(config, rate_factor=min(1.0, 2.5 * (1 - round / rounds)))
    return {name: value.clone() for name, value in run.save()["network"].items()}
