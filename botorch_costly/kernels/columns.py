"""A check that all kernels of this package share."""

from botorch_costly.errors import InvalidShapeError, check


def refuse_last_dim_batch(inputs: str, last_dim_is_batch: bool) -> None:
    """Raise InvalidShapeError if GPyTorch is to treat each input column as a batch entry."""
    expected = f"False ({inputs} are one input)"
    check(
        not last_dim_is_batch, "last_dim_is_batch", expected, last_dim_is_batch, InvalidShapeError
    )
