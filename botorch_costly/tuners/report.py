"""A run in a few lines: what was played, looked at, and believed."""

from collections.abc import Mapping

from botorch_costly.models import StreamingGP
from botorch_costly.query import QueryRule
from botorch_costly.records import Plain
from botorch_costly.tuners.ledger import Ledger


def summarize(
    ledger: Ledger,
    horizon: int | None,
    query: QueryRule,
    model: StreamingGP,
    sign: int,
    best: Mapping[str, Plain] | None,
) -> str:
    """Return a few lines on a run.

    Args:
        ledger: Of the run.
        horizon: Of the run, if known.
        query: Whether to look.
        model: What is believed about the rewards times the sign.
        sign: 1, or -1 where less is better.
        best: Configuration seen, as believed now.
    """
    rounds, looks = len(ledger), ledger.looks
    of = "" if horizon is None else f" of {horizon}"
    share = f" ({looks / rounds:.0%} of the rounds)" if rounds else ""
    lines = [
        f"{rounds}{of} rounds, {looks} looks{share}, {ledger.failed_looks} of them failed",
        f"query rule: {query}",
        f"belief: {model.num_rows} rewards, center {sign * model.center:.4g}, "
        f"scale {model.scale:.4g}, forgetting {model.forgetting:.4g}, noise {model.noise:.3g}",
        f"best configuration seen, as believed now: {'none yet' if best is None else best}",
    ]
    return "\n".join(lines)
