"""What tests of reports share."""

import pytest

from botorch_costly.reports import picture


@pytest.fixture
def drafts(monkeypatch):
    """Pages whose pictures are drawn, and not written out, which takes most of the time of a page."""
    monkeypatch.setattr(picture, "_file_of", lambda draw, _: draw() and b"<svg/>")
