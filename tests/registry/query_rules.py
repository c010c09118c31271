"""Query rules, and whether each of them ``tosses``: reads the generator."""

from typing import NamedTuple

from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
    QueryRule,
)


class QueryCase(NamedTuple):
    rule: QueryRule
    tosses: bool


QUERY_RULES = {
    "AlwaysQuery": QueryCase(AlwaysQuery(), False),
    "BernoulliQuery": QueryCase(BernoulliQuery(0.4), True),
    "ConfidenceQuery": QueryCase(ConfidenceQuery(0.6), False),
    "ConfidenceQuery joint": QueryCase(ConfidenceQuery(0.6, joint=True), False),
    "ConfidenceBoundQuery": QueryCase(ConfidenceBoundQuery(), False),
    "MixedQuery": QueryCase(MixedQuery(2, 7, 10), True),
    "MixedQuery hard": QueryCase(MixedQuery(2, 7, 10, hard=True), True),
    "PricedQuery": QueryCase(PricedQuery(price=0.5), False),
    "PricedQuery in seconds": QueryCase(PricedQuery(price_seconds=90.0, round_seconds=20.0), False),
    "PricedQuery of a budget": QueryCase(PricedQuery(budget=20), False),
    "PricedQuery of a share": QueryCase(PricedQuery(), False),
    "MixedQuery of a price": QueryCase(MixedQuery(2, 7, 10, PricedQuery(price=0.5)), True),
}
