"""Tuned runs that are killed, and what tuning takes of the time of a trainer."""
