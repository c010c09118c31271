"""A convolutional network on CIFAR-10: ``python -m benchmarks boil-cnn``."""

from benchmarks.curves.live.benchmark import run


def main(arguments: list[str]) -> None:
    """Record trainings, play policies on them, and print the table."""
    run("boil-cnn", ["pictures"], arguments)
