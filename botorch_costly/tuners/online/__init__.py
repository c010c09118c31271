"""CE-GP-UCB: tuning inside one training run."""

from botorch_costly.tuners.online.tuner import OnlineTuner

__all__ = ["OnlineTuner"]
