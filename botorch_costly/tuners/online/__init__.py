"""CE-GP-UCB: tuning inside one training run."""

from botorch_costly.tuners.online.options import Design, Hold, Limits, Prior, Refit
from botorch_costly.tuners.online.tuner import OnlineTuner

__all__ = ["Design", "Hold", "Limits", "OnlineTuner", "Prior", "Refit"]
