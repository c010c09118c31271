"""A check of told curves: values of some iterations alone, as if they were those of the first ones."""

from collections.abc import Sequence

CURVES = 4  # after which they are checked


def seem_sparse(lengths: Sequence[tuple[int, int]]) -> bool:
    """Return whether curves seem to have one value for each so many iterations, or for each segment.

    A curve that is shorter than its segment means that training was stopped there. Trainings that are
    stopped early by a rule of their own hardly end at equal shares of their segments.

    Args:
        lengths: Number of values, and of iterations of the segment.

    Example:
        >>> seem_sparse([(6, 63), (6, 63), (12, 125)]), seem_sparse([(6, 63), (50, 63), (9, 63)])
        (True, False)
    """
    if not all(values < iterations for values, iterations in lengths):
        return False
    if all(values == 1 for values, _ in lengths):
        return True
    spacings = range(2, max(iterations for _, iterations in lengths))
    return any(all(n in (m // k, -(-m // k)) for n, m in lengths) for k in spacings)
