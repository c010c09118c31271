"""Support vector machines on MNIST, free to choose: ``python -m benchmarks svm-live``."""

from benchmarks.subsets.live.benchmark import run

NAME = "svm-live"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    run(NAME, "support vector machines on parts of MNIST, trained live", ["svm"], arguments)
