"""Simulated tuning on known functions: many trials of many policies as one tensor program."""

from botorch_costly.simulation.draws import Draws, draw
from botorch_costly.simulation.player import Chance, Decided, Player, TrialHistory, drive
from botorch_costly.simulation.policies import (
    GridPolicy,
    expected_improvement,
    probability_of_improvement,
    upper_confidence_bound,
)
from botorch_costly.simulation.proposal import GridProposal, Ground, grid_proposal
from botorch_costly.simulation.prospect import grid_prospect
from botorch_costly.simulation.run import Run, play
from botorch_costly.simulation.simulate import simulate

__all__ = [
    "Chance",
    "Decided",
    "Draws",
    "GridPolicy",
    "GridProposal",
    "Ground",
    "Player",
    "Run",
    "TrialHistory",
    "draw",
    "drive",
    "expected_improvement",
    "grid_proposal",
    "grid_prospect",
    "play",
    "probability_of_improvement",
    "simulate",
    "upper_confidence_bound",
]
