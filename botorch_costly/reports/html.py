"""An HTML page of runs, which needs no other file and no network."""

import base64
from collections.abc import Iterable, Sequence
from html import escape

from botorch_costly.ask_tell.rows import heads_of
from botorch_costly.plain import value_text
from botorch_costly.records import Decision
from botorch_costly.reports.picture import picture_of, raster_of
from botorch_costly.reports.saved_run import SavedRun, check_saved
from botorch_costly.reports.text import (
    facts_of,
    filled,
    grounds_of,
    outcome_cells,
    outcome_setting,
)
from botorch_costly.schedule import Schedule

# The browser loads and runs nothing, whatever a name in the run contains.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
body { font-family: sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-size: 0.9em; }
th, td { border-bottom: 1px solid #ccc; padding: 0.25em 0.8em; text-align: left; }
img { max-width: 100%; }
"""


def html_of(runs: Sequence[SavedRun | Schedule]) -> str:
    """Return a page of runs: verdict, facts, a picture, the reasons, each query, the options.

    If there are several runs, the page begins with a picture of all their queries.

    Args:
        runs: Saved runs or schedules; a schedule has a picture and a table of its changes.

    Raises:
        ImportError: If Matplotlib is missing.
    """
    check_saved(runs, Schedule, name="runs")
    begun = [run for run in runs if isinstance(run, SavedRun) and run.decisions]
    sections = (_of_schedule(run) if isinstance(run, Schedule) else _of_run(run) for run in runs)
    lines = [line for section in sections for line in section]
    if len(begun) > 1:
        picture = _image(raster_of(begun, "svg"), "The queries of the runs")
        lines = ["<h1>Queries of all runs</h1>", picture, *lines]
    body = "\n".join(lines)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(", ".join(map(_title, runs)))}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _of_run(run: SavedRun) -> list[str]:
    reasons = [("query" if query else "skip", why, count) for query, why, count in run.reasons]
    title = run.queried.capitalize()
    shown = title if run.is_search else f"Schedule and {run.queried}"
    picture = [f"<h2>{shown}</h2>", _picture(run)] if run.decisions else []
    facts = {name: text for name, text in facts_of(run).items() if name != "verdict"}
    verdict = [f"<p><strong>{escape(run.verdict)}</strong></p>"] if run.verdict else []
    grounds = [f"<p>{'<br>'.join(map(escape, grounds_of(run)))}</p>"] if grounds_of(run) else []
    return [
        f"<h1>{escape(_title(run))}</h1>",
        *verdict,
        *grounds,
        _table((), facts.items()),
        *picture,
        "<h2>Reasons</h2>",
        _table(("decision", "reason", f"{run.unit}s"), reasons),
        f"<h2>{title}</h2>",
        _queries(run),
        "<h2>Options</h2>",
        _table(("option", "value"), run.options.items()),
    ]


def _of_schedule(schedule: Schedule) -> list[str]:
    names = list(schedule.entries[0][1])
    rows = [
        (round, *(value_text(config[name]) for name in names)) for round, config in schedule.entries
    ]
    return [
        f"<h1>{escape(_title(schedule))}</h1>",
        _picture(schedule),
        "<h2>Changes</h2>",
        _table(("from round", *heads_of(names, ("from round",))), rows),
    ]


def _title(run: SavedRun | Schedule) -> str:
    if isinstance(run, SavedRun):
        return f"{run.name} ({run.kind})"
    return f"Schedule of rounds {run.rounds[0]} to {run.rounds[-1]}"


def _queries(run: SavedRun) -> str:
    """Return a table of the decisions that were queried or have an observation."""
    queried = [
        decision for decision in run.decisions if decision.query or decision.round in run.told
    ]
    names = list(queried[0].setting) if queried else []
    rows = [(str(decision.round), *_cells(run, decision, names)) for decision in queried]
    told = outcome_cells(run, queried[0]) if queried else (run.told_as,)
    beside = (*told, "reason", "confidence")
    heads = heads_of(names, (run.unit, *beside))
    return _table(*filled((run.unit, *heads, *beside), rows))


def _cells(run: SavedRun, decision: Decision, names: Sequence[str]) -> list[str]:
    setting = outcome_setting(run, decision)
    values = [value_text(setting[name]) for name in names]
    confidence = "" if decision.confidence is None else f"{decision.confidence:.3g}"
    return [*values, *outcome_cells(run, decision).values(), decision.reason, confidence]


def _picture(run: SavedRun | Schedule) -> str:
    return _image(picture_of(run, "svg"), "The hyperparameters over the rounds")


def _image(picture: bytes, alt: str) -> str:
    """Return an image element with its content; a browser runs no script within an image."""
    content = base64.b64encode(picture).decode("ascii")
    return f'<p><img alt="{alt}" src="data:image/svg+xml;base64,{content}"></p>'


def _table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>\n" if names else ""
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table>\n{head}" + "".join(f"<tr>{row}</tr>\n" for row in cells) + "</table>"
