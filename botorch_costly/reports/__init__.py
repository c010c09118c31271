"""Reports of saved runs, for which neither the tuner nor the training loop has to be built.

``saved_runs`` reads what ``botorch_costly.save`` wrote. A run is then described as text or as
an HTML page, drawn, written as a table, or as a page to look into. The command ``botorch-costly``
does that from a shell.
"""

from botorch_costly.reports.html import html_of
from botorch_costly.reports.interactive import interactive_of
from botorch_costly.reports.picture import picture_of, raster_of
from botorch_costly.reports.saved_run import SavedRun, saved_runs
from botorch_costly.reports.table import csv_of, rows_of
from botorch_costly.reports.text import text_of, text_of_schedule

__all__ = [
    "SavedRun",
    "csv_of",
    "html_of",
    "interactive_of",
    "picture_of",
    "raster_of",
    "rows_of",
    "saved_runs",
    "text_of",
    "text_of_schedule",
]
