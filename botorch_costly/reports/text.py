"""Runs and schedules as plain text and as tables."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from botorch_costly.ask_tell.rows import cell_of, columns_of, row_of
from botorch_costly.records import Decision, Plain
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.schedule import Schedule
from botorch_costly.tuners.online.trust_region import cut_by

_LATEST = 5  # number of queries in a report


def text_of(run: SavedRun) -> str:
    """Return a report of a run: verdict and facts, the reasons of its decisions, its latest queries."""
    lines = [f"{title}: {text}" for title, text in facts_of(run).items()]
    if grounds := grounds_of(run):
        lines += ["diagnosis:", *(f"  {line}" for line in grounds)]
    if run.reasons:
        width = max(len(str(count)) for _, _, count in run.reasons)
        lines.append("reasons:")
        for query, reason, count in run.reasons:
            lines.append(f"  {count:{width}d} {'query' if query else 'skip '}  {reason}")
    if latest := latest_queries(run):
        lines.append("latest queries:")
        for decision in latest:
            config, outcome = outcome_config(run, decision), outcome_text(run, decision)
            metric = metric_text(run, decision)
            outcome += f", metric {metric}" if metric else ""
            lines.append(f"  round {decision.round}: {config_text(config)}; {outcome}")
    return "\n".join(lines)


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
    of = "" if run.horizon is None else f" of {run.horizon}"
    kept = "" if len(run.decisions) == run.rounds else f", {len(run.decisions)} of them kept"
    facts = {
        "verdict": run.verdict,
        "run": f"{run.name} ({run.kind})",
        "rounds": f"{run.rounds}{of}{kept}",
        "queries": _queries(run),
        "query rule": query_rule_of(run),
        "spent": _spent(run),
        "trust region": cut_by(run.limits[-1][1], run.space) if run.limits else "",
    }
    if run.best is not None and run.best.reward is not None:
        reward = f"{run.best.reward:.4g} in round {run.best.round}"
        facts[f"best {run.told_as} told"] = f"{reward}, with {config_text(run.best.config)}"
    facts["metric told"] = _measured(run)
    if run.decisions:
        facts["latest"] = config_text(run.decisions[-1].config)
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


def config_text(config: Mapping[str, Plain]) -> str:
    """Return a configuration in one line, floats with four digits."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in config.items())


def value_text(value: Plain) -> str:
    """Return a value as text, floats with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def outcome_text(run: SavedRun, decision: Decision) -> str:
    """Return the reward of a decision, or the reason why there is none."""
    observation = run.told.get(decision.round)
    if observation is None:
        return "not told"
    if observation.failed:
        return "failed"
    return "no reward yet" if observation.reward is None else f"{observation.reward:.4g}"


def metric_text(run: SavedRun, decision: Decision) -> str:
    """Return the metric that was told beside the reward of a decision; "" if there is none."""
    observation = run.told.get(decision.round)
    told = run.metric is None and observation is not None and observation.metric is not None
    return value_text(observation.metric) if told and observation else ""


def outcome_config(run: SavedRun, decision: Decision) -> Mapping[str, Plain]:
    """Return the configuration of an outcome; for a population, that of its best member."""
    observation = run.told.get(decision.round)
    return decision.config if observation is None else observation.config


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


def _queries(run: SavedRun) -> str:
    share = f" ({run.queries / run.rounds:.0%} of the rounds)" if run.rounds else ""
    return f"{run.queries}{share}, {run.failed_queries} failed, {len(run.pending)} not told"


def _measured(run: SavedRun) -> str:
    """Return the first and the latest metric that was told for logs."""
    ends = dict.fromkeys([*run.measured[:1], *run.measured[-1:]])
    return ", ".join(f"{value_text(metric)} in round {round}" for round, metric in ends)


def _spent(run: SavedRun) -> str:
    amounts = [] if run.budget is None else [f"{run.queries} of {run.budget} queries"]
    amounts += [] if run.seconds is None else [f"{run.seconds:.4g} seconds of queries"]
    amounts += [] if run.cost is None else [f"a cost of {run.cost:.4g}"]
    return ", ".join(amounts)
