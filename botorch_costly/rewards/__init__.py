"""From validation metrics to rewards, and back to a network that had not diverged."""

from botorch_costly.rewards.before_after import BeforeAfterReward
from botorch_costly.rewards.gain import GainReward
from botorch_costly.rewards.good_state import GoodState
from botorch_costly.rewards.guard import GuardedReward
from botorch_costly.rewards.scale import RewardScale

__all__ = ["BeforeAfterReward", "GainReward", "GoodState", "GuardedReward", "RewardScale"]
