"""Runs and schedules as plain text and as tables."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.ask_tell.rows import cell_of, columns_of, row_of
from botorch_costly.plain import Plain, config_text, value_text
from botorch_costly.records import Decision
from botorch_costly.reports.saved_run import SavedRun, check_saved
from botorch_costly.schedule import Schedule
from botorch_costly.tuners.online.trust_region import cut_by

_LATEST = 5  # number of queries in a report


def text_of(run: SavedRun) -> str:
    """Return a report of a run: verdict and facts, the reasons of its decisions, its latest queries."""
    check_saved([run])
    lines = [f"{title}: {text}" for title, text in facts_of(run).items()]
    if grounds := grounds_of(run):
        lines += ["diagnosis:", *(f"  {line}" for line in grounds)]
    if run.reasons:
        width = max(len(str(count)) for _, _, count in run.reasons)
        lines.append("reasons:")
        for query, reason, count in run.reasons:
            kind = "" if run.is_search else " query" if query else " skip "
            lines.append(f"  {count:{width}d}{kind}  {reason}")
    if latest := latest_queries(run):
        lines.append(f"latest {run.queried}:")
        lines += [f"  {run.unit} {query.round}: {_line(run, query)}" for query in latest]
    return "\n".join(lines)


def _line(run: SavedRun, query: Decision) -> str:
    """Return the setting and the outcome of a query in one line."""
    outcome, *beside = outcome_cells(run, query).items()
    texts = [outcome[1], *(f"{name} {text}" for name, text in beside if text)]
    return f"{config_text(outcome_setting(run, query))}; {', '.join(texts)}"


def text_of_schedule(schedule: Schedule) -> str:
    """Return the rounds at which a schedule changes, and the configuration from each of them on."""
    first, last = schedule.rounds[0], schedule.rounds[-1]
    title = f"schedule: rounds {first} to {last}, {len(schedule.entries) - 1} changes"
    changes = [f"  from round {round}: {config_text(config)}" for round, config in schedule.entries]
    return "\n".join([title, *changes])


def rows_of(run: SavedRun | Schedule) -> list[dict[str, Any]]:
    """Return one row per round, in plain values; missing values are None.

    Args:
        run: A run, whose rows have the decision, its observation, and the configuration as
            ``config/<name>``; or a schedule, whose rows have the round and the configuration.
    """
    if isinstance(run, Schedule):
        played = zip(run.rounds, run.replay(), strict=True)
        return [{"round": round} | columns_of("config", config) for round, config in played]
    check_saved([run])
    return [row_of(decision, run.told.get(decision.round)) for decision in run.decisions]


def csv_of(run: SavedRun | Schedule) -> str:
    """Return ``rows_of`` as comma-separated values with a header line; None is an empty cell."""
    rows = rows_of(run)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell_of(row.get(name)) for name in columns])
    return text.getvalue()


def facts_of(run: SavedRun) -> dict[str, str]:
    """Return the facts of a run, a line of text for each title; the verdict is the first, if any."""
    facts = {
        "verdict": run.verdict,
        "run": f"{run.name} ({run.kind})",
        **_counts(run),
        "query rule": query_rule_of(run),
        "spent": _spent(run),
        "trust region": cut_by(run.limits[-1][1], run.space) if run.limits else "",
    }
    if run.best is not None and run.best.reward is not None:
        reward = f"{run.best.reward:.4g} in {run.unit} {run.best.round}"
        facts[f"best {run.told_as} told"] = f"{reward}, with {config_text(run.best_setting)}"
    facts["metric told"] = _measured(run)
    if run.decisions:
        facts["latest"] = config_text(run.decisions[-1].setting)
    return {title: text for title, text in facts.items() if text}


def grounds_of(run: SavedRun) -> list[str]:
    """Return the lines of a diagnosis after its verdict: numbers, and warnings of mistakes."""
    return run.diagnosis.splitlines()[1:]


def query_rule_of(run: SavedRun) -> str:
    """Return the query rule with its options other than None; "" if there is no query rule."""
    options = run.options_of("query").items()
    text = ", ".join(f"{name}={value}" for name, value in options if value != "None")
    rule = run.header.get("query", "")
    return f"{rule}({text})" if text else rule


def outcome_text(run: SavedRun, decision: Decision) -> str:
    """Return the reward of a decision, or the reason why there is none."""
    observation = run.told.get(decision.round)
    if observation is None:
        return "not told"
    if observation.failed:
        return "failed"
    return "no reward yet" if observation.reward is None else f"{observation.reward:.4g}"


def outcome_cells(run: SavedRun, decision: Decision) -> dict[str, str]:
    """Return reward or value, metric and cost of a decision by name; "" if it was not told."""
    observation = run.told.get(decision.round)
    metric = None if observation is None or run.metric is not None else observation.metric
    beside = {"metric": metric, "cost": run.cost_of(observation)}
    texts = {name: "" if value is None else value_text(value) for name, value in beside.items()}
    return {run.told_as: outcome_text(run, decision), **texts}


def filled(
    names: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[Sequence[str]]]:
    """Return a table without the columns that are empty in all of its rows, if there are rows."""
    kept = [place for place in range(len(names)) if not rows or any(row[place] for row in rows)]
    return [names[place] for place in kept], [[row[place] for place in kept] for row in rows]


def outcome_setting(run: SavedRun, decision: Decision) -> Mapping[str, Plain]:
    """Return configuration and fidelities of an outcome; for a population, those of its best member."""
    observation = run.told.get(decision.round)
    return decision.setting if observation is None else {**decision.setting, **observation.config}


def latest_queries(run: SavedRun) -> list[Decision]:
    """Return the last decisions with a query, at most five."""
    return [decision for decision in run.decisions if decision.query][-_LATEST:]


def printable(text: str, encoding: str = "utf-8") -> str:
    r"""Escape control characters, and characters that the encoding lacks.

    Example:
        >>> print(printable("lr\x1b[2J"))
        lr\x1b[2J
    """
    escaped = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    return escaped.encode(encoding, "backslashreplace").decode(encoding)


def _counts(run: SavedRun) -> dict[str, str]:
    """Return how many rounds and queries there were; of a search, how many evaluations."""
    of = "" if run.horizon is None else f" of {run.horizon}"
    kept = "" if len(run.decisions) == run.rounds else f", {len(run.decisions)} of them kept"
    outcomes = f", {run.failed_queries} failed, {len(run.pending)} not told"
    if run.is_search:
        cancelled = run.rounds - len(run.decisions)
        outcomes += f", {cancelled} cancelled" if cancelled else ""
        return {run.queried: f"{run.rounds}{of}{outcomes}"}
    share = f" ({run.queries / run.rounds:.0%} of the rounds)" if run.rounds else ""
    return {"rounds": f"{run.rounds}{of}{kept}", "queries": f"{run.queries}{share}{outcomes}"}


def _measured(run: SavedRun) -> str:
    """Return the first and the latest metric that was told for logs."""
    ends = dict.fromkeys([*run.measured[:1], *run.measured[-1:]])
    return ", ".join(f"{value_text(metric)} in round {round}" for round, metric in ends)


def _spent(run: SavedRun) -> str:
    amounts = [] if run.budget is None else [f"{run.queries} of {run.budget} {run.queried}"]
    amounts += [] if run.seconds is None else [f"{run.seconds:.4g} seconds of {run.queried}"]
    amounts += [] if run.cost is None else [f"a cost of {run.cost:.4g}"]
    return ", ".join(amounts)
