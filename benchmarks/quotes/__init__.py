"""Every number that a page quotes from stored rows, computed from these rows again.

``quote.py`` finds a sentence in a page and compares its numbers at the precision in which they are
printed, ``rows.py`` has the statistics, and the other modules are the table of quotes, one for a subject.
"""
