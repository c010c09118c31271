"""Networks on parts of CIFAR-10, live: ``python -m benchmarks fabolas-networks``."""

from benchmarks.subsets.live.benchmark import run

NAME = "fabolas-networks"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the tables."""
    small, whole = ["cnn, small", "residual, small"], ["cnn", "residual"]
    run(NAME, "networks on parts of CIFAR-10, trained live", small, arguments, more=whole)
