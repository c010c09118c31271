"""A run in plain text."""

from collections.abc import Mapping

from botorch_costly.records import Decision, Plain
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.schedule import Schedule

_LATEST = 5  # queries that are shown


def text_of(run: SavedRun) -> str:
    """Return a report of a run: what was played and paid for, and why.

    Args:
        run: As ``saved_runs`` returns it.
    """
    facts = [f"{title}: {said}" for title, said in facts_of(run).items()]
    return "\n".join([*facts, *_reasons(run), *_latest(run)])


def text_of_schedule(schedule: Schedule) -> str:
    """Return the rounds at which a schedule changes, and to what."""
    first, last = schedule.rounds[0], schedule.rounds[-1]
    title = f"schedule: rounds {first} to {last}, {len(schedule.entries) - 1} changes"
    changes = [f"  from round {at}: {config_text(config)}" for at, config in schedule.entries]
    return "\n".join([title, *changes])


def facts_of(run: SavedRun) -> dict[str, str]:
    """Return what can be said of a run in a line each, by title."""
    of = "" if run.horizon is None else f" of {run.horizon}"
    kept = "" if len(run.decisions) == run.rounds else f", {len(run.decisions)} of them kept"
    facts = {
        "run": f"{run.name} ({run.kind})",
        "rounds": f"{run.rounds}{of}{kept}",
        "queries": _queries(run),
        "query rule": query_rule_of(run),
        "spent": _spent(run),
    }
    if run.best is not None and run.best.reward is not None:
        reward = f"{run.best.reward:.4g} in round {run.best.round}"
        facts[f"best {run.told_as} told"] = f"{reward}, with {config_text(run.best.config)}"
    if run.decisions:
        facts["latest"] = config_text(run.decisions[-1].config)
    return {title: said for title, said in facts.items() if said}


def query_rule_of(run: SavedRun) -> str:
    """Return the query rule with those of its options that are set; "" without one."""
    given = run.options_of("query").items()
    said = ", ".join(f"{name}={value}" for name, value in given if value != "None")
    rule = run.header.get("query", "")
    return f"{rule}({said})" if said else rule


def config_text(config: Mapping[str, Plain]) -> str:
    """Return a configuration in a line, numbers with four digits."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in config.items())


def value_text(value: Plain) -> str:
    """Return a value, floats with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def outcome_text(run: SavedRun, decision: Decision) -> str:
    """Return what was told of a decision: a reward, or why there is none."""
    told = run.told.get(decision.round)
    if told is None:
        return "not told"
    if told.failed:
        return "failed"
    return "no reward yet" if told.reward is None else f"{told.reward:.4g}"


def outcome_config(run: SavedRun, decision: Decision) -> Mapping[str, Plain]:
    """Return the configuration that an outcome belongs to: in a population that of its best member."""
    told = run.told.get(decision.round)
    return decision.config if told is None else told.config


def latest_queries(run: SavedRun) -> list[Decision]:
    """Return the last decisions with a query, at most five."""
    return [one for one in run.decisions if one.query][-_LATEST:]


def printable(text: str, encoding: str = "utf-8") -> str:
    r"""Return text in which what a terminal cannot show, or would obey, is escaped.

    Example:
        >>> print(printable("lr\x1b[2J"))
        lr\x1b[2J
    """
    shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _queries(run: SavedRun) -> str:
    share = f" ({run.queries / run.rounds:.0%} of the rounds)" if run.rounds else ""
    rest = f", {run.failed_queries} failed, {len(run.pending)} not told"
    return f"{run.queries}{share}{rest}"


def _spent(run: SavedRun) -> str:
    said = [] if run.budget is None else [f"{run.queries} of {run.budget} queries"]
    said += [] if run.seconds is None else [f"{run.seconds:.4g} seconds of queries"]
    said += [] if run.cost is None else [f"a cost of {run.cost:.4g}"]
    return ", ".join(said)


def _reasons(run: SavedRun) -> list[str]:
    if not run.reasons:
        return []
    width = max(len(str(count)) for _, _, count in run.reasons)
    rows = [
        f"  {count:{width}d} {'query' if query else 'skip '}  {reason}"
        for query, reason, count in run.reasons
    ]
    return ["reasons:", *rows]


def _latest(run: SavedRun) -> list[str]:
    rows = [
        f"  round {one.round}: {config_text(outcome_config(run, one))}; {outcome_text(run, one)}"
        for one in latest_queries(run)
    ]
    return ["latest queries:", *rows] if rows else []
