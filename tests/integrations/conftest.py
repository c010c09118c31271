"""Programs that tests launch are no tests, and need libraries that may be missing."""

import logging

import pytest

collect_ignore_glob = ["*_program.py", "lightning_fits.py"]
OURS = "botorch_costly"


@pytest.fixture
def said(caplog, monkeypatch, tmp_path):
    """What our loggers say; other callbacks write files where the program runs."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.WARNING, OURS)
    return lambda: [one.getMessage() for one in caplog.records if one.name.startswith(OURS)]


@pytest.fixture
def warned(caplog):
    """What our loggers say, but for queries that fail: rates are tried that are too large."""
    caplog.set_level(logging.WARNING, OURS)

    def lines():
        records = [one for one in caplog.records if one.name.startswith(OURS)]
        return [one.getMessage() for one in records if not one.name.endswith("ledger")]

    return lines
