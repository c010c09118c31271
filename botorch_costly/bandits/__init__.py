"""Which of finitely many arms to play while their rewards drift: bandit strategies, and their play."""

from botorch_costly.bandits.arm_fitting import ArmPrior, FitSchedule
from botorch_costly.bandits.epsilon_greedy import EpsilonGreedy
from botorch_costly.bandits.exp3r import EXP3R
from botorch_costly.bandits.exp3s import EXP3S
from botorch_costly.bandits.gp_ucb import GPUCB
from botorch_costly.bandits.player import BanditPlayer, BanditPolicy
from botorch_costly.bandits.rewards import RewardRange
from botorch_costly.bandits.simulate import ArmRun, simulate_arms
from botorch_costly.bandits.softmax import Softmax
from botorch_costly.bandits.strategy import Advice, ArmBelief, Strategy, Told
from botorch_costly.bandits.ucb1 import UCB1

__all__ = [
    "EXP3R",
    "EXP3S",
    "GPUCB",
    "UCB1",
    "Advice",
    "ArmBelief",
    "ArmPrior",
    "ArmRun",
    "BanditPlayer",
    "BanditPolicy",
    "EpsilonGreedy",
    "FitSchedule",
    "RewardRange",
    "Softmax",
    "Strategy",
    "Told",
    "simulate_arms",
]
