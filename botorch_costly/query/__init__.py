"""Whether to pay for a query: query rules."""

from botorch_costly.query.bernoulli import AlwaysQuery, BernoulliQuery
from botorch_costly.query.confidence import (
    ConfidenceBoundQuery,
    ConfidenceQuery,
    confidence,
    kappa_of_bounds,
)
from botorch_costly.query.mixed import MixedQuery
from botorch_costly.query.priced import PricedQuery
from botorch_costly.query.rule import (
    RECENT,
    Cause,
    Comparison,
    Outlook,
    Progress,
    Prospect,
    QueryRule,
    UnqueriedPlay,
    Verdict,
)

__all__ = [
    "RECENT",
    "AlwaysQuery",
    "BernoulliQuery",
    "Cause",
    "Comparison",
    "ConfidenceBoundQuery",
    "ConfidenceQuery",
    "MixedQuery",
    "Outlook",
    "PricedQuery",
    "Progress",
    "Prospect",
    "QueryRule",
    "UnqueriedPlay",
    "Verdict",
    "confidence",
    "kappa_of_bounds",
]
