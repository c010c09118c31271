"""Support vector machines as a program."""

from benchmarks.subsets.live.program import Config, Outcome, Program
from benchmarks.subsets.svm import FRACTION, SPACE, Size
from benchmarks.subsets.svm import trained as trained_machine

_SIZE = Size()


def _trained(config: Config, fraction: float, seed: int) -> Outcome:
    return trained_machine(config, fraction, seed, _SIZE)


SUPPORT_VECTORS = Program(SPACE, FRACTION, _trained, (5, 10, 20, 40, 80), _SIZE.checked)
