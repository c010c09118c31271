"""A searcher of Ray Tune; its extra is ``botorch_costly[ray]``."""

from botorch_costly.integrations.ray.searcher import OfflineSearcher

__all__ = ["OfflineSearcher"]
