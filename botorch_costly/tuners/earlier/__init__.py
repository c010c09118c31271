"""Earlier studies, as all searches that take them read them: their ends, in units of their own."""

from botorch_costly.tuners.earlier.studies import EarlierStudies

__all__ = ["EarlierStudies"]
