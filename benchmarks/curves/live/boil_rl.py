"""Two trainings of reinforcement learning: ``python -m benchmarks boil-rl``."""

from benchmarks.curves.live.benchmark import run


def main(arguments: list[str]) -> None:
    """Record trainings, play policies on them, and print the table."""
    run("boil-rl", ["cartpole", "pendulum"], arguments)
