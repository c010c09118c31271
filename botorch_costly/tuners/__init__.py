"""When: ask/tell tuners."""

from botorch_costly.tuners.online.tuner import OnlineTuner

__all__ = ["OnlineTuner"]
