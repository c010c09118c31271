"""When to validate, on how many examples, when to stop and which checkpoint to keep."""

from botorch_costly.validation.validation import Validation

__all__ = ["Validation"]
