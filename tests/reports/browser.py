"""A real browser without a window, for the tests of pages."""

import os
import shutil
import subprocess

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")


def shown(page, folder, *options):
    """The elements of a page after its scripts have run, as text."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", page.as_uri()]
    env = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, check=True)
    return ran.stdout
