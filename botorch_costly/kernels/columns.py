"""What all kernels of this package refuse."""

from botorch_costly.errors import InvalidShapeError, check


def refuse_last_dim_batch(inputs: str, last_dim_is_batch: bool) -> None:
    """Raise InvalidShapeError if each input column is to be a batch entry of its own."""
    check(
        not last_dim_is_batch,
        "last_dim_is_batch",
        f"False ({inputs} are one input)",
        last_dim_is_batch,
        InvalidShapeError,
    )
