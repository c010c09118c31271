"""Adapters to the loops and engines that people already use.

This room needs PyTorch alone. The adapters to other libraries lie in modules of their own, such as
``botorch_costly.integrations.lightning``; each comes with an extra of the package's, and says so if
the library is missing.
"""

from botorch_costly.integrations.applying import apply
from botorch_costly.integrations.rounds import RoundClock, RoundLength

__all__ = ["RoundClock", "RoundLength", "apply"]
