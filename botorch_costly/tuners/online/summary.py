"""A run in a few lines: what was played, queried, and believed."""

from collections.abc import Mapping

from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.models import StreamingGP
from botorch_costly.query import QueryRule
from botorch_costly.records import Decision, Observation, Plain


def summarize(
    ledger: Ledger[Decision, Observation],
    horizon: int | None,
    query: QueryRule,
    model: StreamingGP,
    sign: float,
    best: Mapping[str, Plain] | None,
) -> str:
    """Return a few lines on a run.

    Args:
        ledger: Of the run.
        horizon: Of the run, if known.
        query: Whether to query.
        model: What is believed about the rewards times the sign.
        sign: 1, or -1 where less is better.
        best: Configuration seen, as believed now.
    """
    rounds, queries = len(ledger), ledger.queries
    of = "" if horizon is None else f" of {horizon}"
    share = f" ({queries / rounds:.0%} of the rounds)" if rounds else ""
    lines = [
        f"{rounds}{of} rounds, {queries} queries{share}, {ledger.failed_queries} of them failed",
        f"query rule: {query}",
        f"belief: {model.num_rows} rewards, center {sign * model.center:.4g}, "
        f"scale {model.scale:.4g}, forgetting {model.forgetting:.4g}, noise {model.noise:.3g}",
        f"best configuration seen, as believed now: {'none yet' if best is None else best}",
    ]
    return "\n".join(lines)
