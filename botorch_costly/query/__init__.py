"""Whether to pay for a look: query rules."""

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
    BlindPlay,
    Cause,
    Contest,
    Outlook,
    Progress,
    Prospect,
    QueryRule,
    Verdict,
)

__all__ = [
    "RECENT",
    "AlwaysQuery",
    "BernoulliQuery",
    "BlindPlay",
    "Cause",
    "ConfidenceBoundQuery",
    "ConfidenceQuery",
    "Contest",
    "MixedQuery",
    "Outlook",
    "PricedQuery",
    "Progress",
    "Prospect",
    "QueryRule",
    "Verdict",
    "confidence",
    "kappa_of_bounds",
]
