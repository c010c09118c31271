"""``Validation`` in distributed runs, and in the trainers of Lightning and Transformers."""

from botorch_costly.integrations.validation.shared import SharedValidation

__all__ = ["SharedValidation"]
