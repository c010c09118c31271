"""A searcher and a scheduler of Ray Tune; their extra is ``botorch_costly[ray]``."""

from botorch_costly.integrations.ray.scheduler import PopulationScheduler
from botorch_costly.integrations.ray.searcher import OfflineSearcher

__all__ = ["OfflineSearcher", "PopulationScheduler"]
