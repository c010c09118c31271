"""Pictures of schedules, queries, beliefs and trade-offs.

Functions take records or plain arrays and an optional ``Axes``, and return ``Axes``. Without one they
make a figure that pyplot does not know: no window shows it, and it need not be closed. Save it with
``ax.figure.savefig(...)``. Matplotlib comes with the extra ``botorch_costly[plot]``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.records import Decision, Observation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from botorch_costly.transforms import CurveCompression
    from botorch_costly.tuners.curves.trainings import Training

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""The palette of Okabe and Ito, which readers with any colour vision tell apart."""

_CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)  # yellow is too pale for lines
_MARKERS = "osD^vP*"  # a second way to tell curves apart
_QUERY, _SKIP = PURPLE, GREEN
_FAINTEST = 0.15  # opacity of the oldest mark


class Marks(NamedTuple):
    """Rounds drawn as points, shaded by how long ago they were."""

    x: Any  # shape: (k,)
    y: Any  # shape: (k,)
    age: Any  # rounds ago, shape: (k,)


def plot_schedule(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    observations: Sequence[Observation] | None = None,
    axes: "Sequence[Axes] | None" = None,
    log: Collection[str] = (),
) -> "list[Axes]":
    """Draw each hyperparameter over the rounds, and the rewards below them.

    Dots mark the rounds with a query.

    Args:
        decisions: In the order of their rounds.
        names: The hyperparameters to draw; all of them if omitted.
        observations: Their rewards are drawn in a last panel; no such panel if omitted.
        axes: One for each hyperparameter, and one more with observations; made if omitted.
        log: Names of the hyperparameters to draw on a logarithmic scale.

    Returns:
        The axes, in the order of the panels.

    Raises:
        InvalidArgumentError: If there is nothing to draw or a name is unknown.
        InvalidShapeError: If the number of axes is not the number of panels.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    known = list(decisions[0].config)
    shown = known if names is None else list(names)
    check(len(shown) > 0, "names", f"names among {known}", shown)
    for name in [*shown, *log]:
        check(name in known, "names", f"names among {known}", name)
    panels = len(shown) + (observations is not None)
    drawn = _stack(panels) if axes is None else list(axes)
    check(len(drawn) == panels, "axes", f"{panels} axes", len(drawn), InvalidShapeError)
    for i, name in enumerate(shown):
        _draw_parameter(drawn[i], decisions, name, _CYCLE[i % len(_CYCLE)])
        if name in log:
            drawn[i].set_yscale("log")
    if axes is None:
        drawn[0].set_title("dots: rounds with a query", loc="right", fontsize="small")
    if observations is not None:
        seen = [(o.round, o.reward) for o in observations if o.reward is not None]
        drawn[-1].plot(*_columns(seen, 2), "o", color=BLACK, markersize=3)
        drawn[-1].set_ylabel("reward")
    drawn[-1].set_xlabel("round")
    if axes is None:
        drawn[0].figure.align_ylabels(drawn)
    return drawn


def plot_schedule_map(
    decisions: Sequence[Decision],
    names: Sequence[str] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    ax: "Axes | None" = None,
    label: str = "value",
) -> "Axes":
    """Draw many hyperparameters of one range: one row each, coloured by its value.

    Args:
        decisions: In the order of their rounds.
        names: The hyperparameters to draw, from top to bottom; all of them if omitted.
        limits: The range of the colours.
        ax: Where to draw; made if omitted.
        label: Name of the colours.

    Raises:
        InvalidArgumentError: If there is no decision or a name is unknown.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    known = list(decisions[0].config)
    shown = known if names is None else list(names)
    check(set(shown) <= set(known), "names", f"names among {known}", shown)
    ax = _one(ax, height=0.4 * len(shown) + 1)
    rows: Any = [[d.config[name] for d in decisions] for name in shown]
    first, last = decisions[0].round, decisions[-1].round
    image = ax.imshow(
        rows,
        aspect="auto",
        interpolation="nearest",
        cmap="cividis",
        vmin=limits[0],
        vmax=limits[1],
        extent=(first - 0.5, last + 0.5, len(shown) - 0.5, -0.5),
    )
    ax.set_yticks(range(len(shown)), shown)
    ax.set_xlabel("round")
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.01)
    return ax


def plot_queries(decisions: Sequence[Decision], ax: "Axes | None" = None) -> "Axes":
    """Draw the rounds with a query and those without one, coloured by the reason.

    Reasons that differ only in what stands in parentheses are one group.

    Args:
        decisions: In the order of their rounds.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is no decision.
        ImportError: If Matplotlib is missing.
    """
    check(len(decisions) > 0, "decisions", "at least one decision", len(decisions))
    ax = _one(ax, height=2.2)
    groups: dict[tuple[bool, str], list[int]] = {}
    for decision in decisions:
        key = (decision.query, decision.reason.partition(" (")[0])
        groups.setdefault(key, []).append(decision.round)
    queries = sum(decision.query for decision in decisions)
    ordered = sorted(groups.items(), key=lambda group: (not group[0][0], -len(group[1])))
    for i, ((query, reason), rounds) in enumerate(ordered):
        word = "query" if query else "skip"
        ax.eventplot(
            rounds,
            lineoffsets=1.0 if query else 0.0,
            linelengths=0.8,
            linewidths=1.2,
            colors=_CYCLE[i % len(_CYCLE)],
            label=f"{word}: {reason} ({len(rounds)})",
        )
    ax.set_yticks([0, 1], [f"skip ({len(decisions) - queries})", f"query ({queries})"])
    ax.set_ylim(-0.6, 1.6)
    ax.set_xlabel("round")
    columns = 2 if len(groups) > 2 else 1
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        fontsize="small",
        frameon=False,
        ncols=columns,
    )
    return ax


def plot_regret_against_cost(
    curves: Mapping[str, tuple[Any, ...]],
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the regret of each method over its number of queries: lower left is better.

    Args:
        curves: Name to ``(queries, regret)`` or ``(queries, regret, standard error)``, each of shape
            ``(k,)``; points are joined in the order of their queries.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is no curve.
        InvalidShapeError: If the arrays of a curve differ in length.
        ImportError: If Matplotlib is missing.
    """
    check(len(curves) > 0, "curves", "at least one curve", len(curves))
    ax = _one(ax)
    for i, (name, columns) in enumerate(curves.items()):
        lengths = [len(column) for column in columns]
        fits = len(lengths) in (2, 3) and len(set(lengths)) == 1 and lengths[0] > 0
        check(fits, name, "two or three arrays of one length", lengths, InvalidShapeError)
        points = sorted(zip(*(map(float, column) for column in columns), strict=True))
        cost, regret, *error = _columns(points, len(columns))
        ax.errorbar(
            cost,
            regret,
            error[0] if error else None,
            color=_CYCLE[i % len(_CYCLE)],
            marker=_MARKERS[i % len(_MARKERS)],
            markersize=5,
            linewidth=2 if i == 0 else 1.2,
            capsize=2,
            label=name,
        )
    ax.set_xlabel("queries in a run")
    ax.set_ylabel("average regret per round")
    ax.legend(frameon=False)
    return ax


def plot_belief(
    x: Any,
    mean: Any,
    std: Any,
    truth: Any = None,
    queries: Marks | None = None,
    skips: Marks | None = None,
    ax: "Axes | None" = None,
    width: float = 2.0,
) -> "Axes":
    """Draw a belief about a function of one variable, and the rounds that were played.

    Args:
        x: Points in ascending order, shape ``(n,)``.
        mean: Posterior mean, shape ``(n,)``.
        std: Posterior standard deviation, shape ``(n,)``.
        truth: The function itself if it is known, shape ``(n,)``.
        queries: Rounds with a query; the more recent, the darker.
        skips: Rounds without one.
        ax: Where to draw; made if omitted.
        width: Half the height of the band, in standard deviations.

    Raises:
        InvalidShapeError: If the arrays differ in length.
        ImportError: If Matplotlib is missing.
    """
    given = [mean, std] + ([] if truth is None else [truth])
    lengths = [len(values) for values in given]
    fits = all(length == len(x) for length in lengths)
    check(fits, "mean, std, truth", f"{len(x)} values each", lengths, InvalidShapeError)
    ax = _one(ax)
    low, high = mean - width * std, mean + width * std
    band = f"mean ± {width:.3g} std"
    ax.fill_between(x, low, high, color="#999999", alpha=0.3, linewidth=0, label=band)
    ax.plot(x, mean, "--", color=VERMILION, label="posterior mean")
    if truth is not None:
        ax.plot(x, truth, color=BLUE, label="truth")
    oldest = max((float(age) for kind in (queries, skips) if kind for age in kind.age), default=1.0)
    _draw_marks(ax, skips, "skip", "s", _SKIP, oldest)
    _draw_marks(ax, queries, "query", "o", _QUERY, oldest)
    ax.set_xlabel("x")
    ax.set_ylabel("reward")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_query_value(x: Any, value: Any, price: float, ax: "Axes | None" = None) -> "Axes":
    """Draw the value of a query at each point, against its price.

    A query pays where the curve is above the price; the best point is marked.

    Args:
        x: Points in ascending order, shape ``(n,)``.
        value: Value of a query at each point, in rewards: ``mean + effective_horizon * gain - max mean``
            (``gain`` is the knowledge gradient), shape ``(n,)``.
        price: Price of a query, in rewards.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidShapeError: If the arrays differ in length.
        ImportError: If Matplotlib is missing.
    """
    fits = len(value) == len(x)
    check(fits, "value", f"{len(x)} values", len(value), InvalidShapeError)
    ax = _one(ax)
    heights = [float(height) for height in value]
    best = max(range(len(heights)), key=heights.__getitem__)
    pays = heights[best] > price
    ax.plot(x, heights, color=BLACK, label="value of a query at x")
    ax.axhline(price, color=VERMILION, linestyle="--", label=f"price of a query, {price:.3g}")
    above = [height > price for height in heights]
    ax.fill_between(x, heights, price, where=above, color=_QUERY, alpha=0.3, linewidth=0)
    color, marker, says = (_QUERY, "o", "query here") if pays else (_SKIP, "s", "no query")
    ax.plot([float(x[best])], [heights[best]], marker, color=color, label=says)
    ax.set_xlabel("x")
    ax.set_ylabel("value, in rewards")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_trainings(trainings: "Sequence[Training]", ax: "Axes | None" = None) -> "Axes":
    """Draw the learning curves of all trainings of a search, and how each of them ended.

    Args:
        trainings: As ``CurveOptimizer.trainings`` has them, rewards such that larger is better.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If no training has a reward.
        ImportError: If Matplotlib is missing.
    """
    seen = [training for training in trainings if training.known]
    check(len(seen) > 0, "trainings", "at least one with a reward", len(trainings))
    ax = _one(ax)
    best = max(seen, key=lambda training: training.latest)
    kinds: Mapping[str, tuple[list[Training], str, str]] = {
        "left where it was": ([t for t in seen if t.may_go_on], "o", SKY),
        "in training": ([t for t in seen if t.until is not None], ">", ORANGE),
        "diverged": ([t for t in seen if t.broken], "X", VERMILION),
        "trained to its end": ([t for t in seen if t.is_whole], "s", BLUE),
    }
    for name, (mine, marker, color) in kinds.items():
        for training in mine:
            at = training.known
            ax.plot(at, [training.curve[k - 1] for k in at], color=color, linewidth=0.8, alpha=0.6)
        ends = [(t.known[-1], t.latest) for t in mine]
        if mine:
            label = f"{name} ({len(mine)})"
            ax.plot(*_columns(ends, 2), marker, color=color, markersize=4, label=label)
    curve = [best.curve[k - 1] for k in best.known]
    ax.plot(best.known, curve, color=BLACK, linewidth=2, label="best at hand")
    ax.set_xlabel("iteration")
    ax.set_ylabel("reward")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_curve_weights(
    compressions: "Mapping[str, CurveCompression]", ax: "Axes | None" = None
) -> "Axes":
    """Draw the weight that each iteration of a training has in its score.

    Args:
        compressions: By name; their midpoints and growths are single numbers.
        ax: Where to draw; made if omitted.

    Raises:
        InvalidArgumentError: If there is none.
        ImportError: If Matplotlib is missing.
    """
    check(len(compressions) > 0, "compressions", "at least one", len(compressions))
    ax = _one(ax)
    for i, (name, compression) in enumerate(compressions.items()):
        weights = compression.weights.detach().flatten()
        shares = [(k + 1) / len(weights) for k in range(len(weights))]
        color = _CYCLE[i % len(_CYCLE)]
        marker: Any = {"marker": _MARKERS[i % len(_MARKERS)], "markevery": 0.1, "markersize": 4}
        ax.plot(shares, (weights / weights.max()).tolist(), color=color, label=name, **marker)
    ax.set_xlabel("share of the training")
    ax.set_ylabel("weight, of the largest")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _draw_marks(
    ax: "Axes", marks: Marks | None, label: str, marker: str, color: str, oldest: float
) -> None:
    if marks is None or len(marks.x) == 0:
        return
    from matplotlib.colors import to_rgba

    freshness = [1 - float(age) / max(oldest, 1.0) for age in marks.age]
    colors = [to_rgba(color, _FAINTEST + (1 - _FAINTEST) * fresh) for fresh in freshness]
    ax.scatter(marks.x, marks.y, s=28, c=colors, marker=marker, linewidths=0, zorder=3)
    ax.scatter([], [], s=28, color=color, marker=marker, label=f"{label} (darker: more recent)")


def _draw_parameter(ax: "Axes", decisions: Sequence[Decision], name: str, color: str) -> None:
    rounds = [decision.round for decision in decisions]
    values: list[Any] = [decision.config[name] for decision in decisions]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        levels = list(dict.fromkeys(values))  # in the order they were first played
        values = [levels.index(value) for value in values]
        ax.set_yticks(range(len(levels)), [str(level) for level in levels])
        ax.set_ylim(-0.5, len(levels) - 0.5)
    ax.plot(rounds, values, drawstyle="steps-post", color=color, linewidth=1)
    queried = [i for i, decision in enumerate(decisions) if decision.query]
    x, y = [rounds[i] for i in queried], [values[i] for i in queried]
    ax.plot(x, y, "o", color=color, markersize=3)
    ax.set_ylabel(name)


def _columns(points: Sequence[tuple[float, ...]], number: int) -> list[list[float]]:
    return [[point[i] for point in points] for i in range(number)]


def _one(ax: "Axes | None", height: float = 4.0) -> "Axes":
    return _stack(1, height)[0] if ax is None else ax


def _stack(panels: int, height: float = 1.6) -> "list[Axes]":
    """Return panels below each other in a figure that pyplot does not know."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        needed = "Plotting needs Matplotlib: pip install 'botorch_costly[plot]'"
        raise ImportError(needed) from error
    figure = Figure(figsize=(7, max(height * panels, 2.0)), layout="constrained")
    FigureCanvasAgg(figure)
    return list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])
