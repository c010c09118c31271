"""Adapters to common training loops and tuning engines.

This module needs PyTorch alone. Each adapter to another library is a separate module, such as
``botorch_costly.integrations.lightning``; if the library is missing, its error names the extra of the
package that installs it.
"""

from botorch_costly.integrations.applying import apply
from botorch_costly.integrations.rewindable import Rewindable
from botorch_costly.integrations.rounds import RoundClock, RoundLength

__all__ = ["Rewindable", "RoundClock", "RoundLength", "apply"]
