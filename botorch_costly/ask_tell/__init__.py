"""The common base of all optimizers: asking and telling, the ledger, states, designs and searches."""

from botorch_costly.ask_tell.diagnosis import SearchDiagnosis
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.optimizer import GainOptimizer, Optimizer
from botorch_costly.ask_tell.protocol import AskTell, Outcome, Suggestion
from botorch_costly.ask_tell.saving import load, save
from botorch_costly.ask_tell.state import unchanged_on_error
from botorch_costly.ask_tell.strategy import Proposal, Strategy
from botorch_costly.states import Stateful

__all__ = [
    "AskTell",
    "Domain",
    "Evaluations",
    "GainOptimizer",
    "Ledger",
    "Optimizer",
    "Outcome",
    "Proposal",
    "SearchDiagnosis",
    "Stateful",
    "Strategy",
    "Suggestion",
    "load",
    "save",
    "unchanged_on_error",
]
