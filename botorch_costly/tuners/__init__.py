"""When: ask/tell tuners, their state and their rewards."""

from botorch_costly.tuners.gain import GainReward
from botorch_costly.tuners.guard import GuardedReward
from botorch_costly.tuners.online import OnlineTuner
from botorch_costly.tuners.rewards import RewardScale
from botorch_costly.tuners.schedule import Schedule

__all__ = ["GainReward", "GuardedReward", "OnlineTuner", "RewardScale", "Schedule"]
