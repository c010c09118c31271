"""Pictures of schedules, queries, beliefs, trade-offs and searches.

Functions take records or plain arrays and an optional ``Axes``, and return ``Axes``. If ``Axes`` are
omitted, they make a figure outside of pyplot: no window shows it, and it need not be closed. Save it with
``ax.figure.savefig(...)``. Matplotlib comes with the extra ``botorch_costly[plot]``.
``explore_run`` returns an interactive figure of Plotly instead.
"""

from botorch_costly.plotting.beliefs import Marks, plot_belief, plot_query_value
from botorch_costly.plotting.costs import plot_quality_against_cost, plot_regret_against_cost
from botorch_costly.plotting.importance import plot_importance
from botorch_costly.plotting.interactive import explore_run
from botorch_costly.plotting.queries import plot_queries, plot_query_raster
from botorch_costly.plotting.runs import plot_schedule, plot_schedule_map
from botorch_costly.plotting.slices import plot_slice
from botorch_costly.plotting.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from botorch_costly.plotting.trainings import plot_curve_weights, plot_trainings
from botorch_costly.plotting.transfer import plot_transfer

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "ORANGE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "YELLOW",
    "Marks",
    "explore_run",
    "plot_belief",
    "plot_curve_weights",
    "plot_importance",
    "plot_quality_against_cost",
    "plot_queries",
    "plot_query_raster",
    "plot_query_value",
    "plot_regret_against_cost",
    "plot_schedule",
    "plot_schedule_map",
    "plot_slice",
    "plot_trainings",
    "plot_transfer",
]
