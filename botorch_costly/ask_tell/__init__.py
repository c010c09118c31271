"""What all optimizers share: asking and telling, the ledger, the state, designs and searches."""

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.protocol import AskTell, Believing, Outcome, Stateful, Suggestion
from botorch_costly.ask_tell.state import load, save, unchanged_on_error

__all__ = [
    "AskTell",
    "Believing",
    "Ledger",
    "Outcome",
    "Stateful",
    "Suggestion",
    "load",
    "save",
    "unchanged_on_error",
]
