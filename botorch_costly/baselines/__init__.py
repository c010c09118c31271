"""Rivals of the transfer methods, from other papers: what benchmarks compare with."""

from botorch_costly.baselines.empirical_prior import EmpiricalPriorGP
from botorch_costly.baselines.rank_weighted import RankWeightedGP
from botorch_costly.baselines.scaled_tasks import ScaMLGP
from botorch_costly.baselines.transfer_improvement import TAF

__all__ = ["TAF", "EmpiricalPriorGP", "RankWeightedGP", "ScaMLGP"]
