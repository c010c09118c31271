"""Known truths to measure methods against."""

from botorch_costly.problems.drifting import DriftingFunction

__all__ = ["DriftingFunction"]
