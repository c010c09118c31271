"""The whole scripts of the tutorials run from the command line, and end better than they begin."""

import os
import re
import subprocess
import sys

import pytest

from tests.cases import slow
from tests.pages import PAGES, ROOT, libraries_of, skip_without, text_of

EXAMPLES = sorted((ROOT / "tutorials" / "examples").glob("*.py"))
every_example = pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)


def results(words, output):
    """Return the numbers that a script prints after some words and a colon."""
    return [float(number) for number in re.findall(rf"\b{words}\b[^:\n]*: *(\d\.\d+)", output)]


@every_example
def test_it_is_short_and_a_page_leads_to_it(script):
    assert len(text_of(script).splitlines()) <= 60
    assert any(f"tutorials/examples/{script.name})" in text_of(page) for page in PAGES)


# Each of them imports everything anew, which takes several seconds.
@pytest.mark.parametrize("script", [slow(path) for path in EXAMPLES], ids=lambda path: path.stem)
def test_it_runs_and_ends_better_than_without(script, tmp_path):
    skip_without(libraries_of(text_of(script)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    before, after = results("without", done.stdout), results("with", done.stdout)
    assert len(before) == len(after) > 0
    gain = sum(after) - sum(before)
    assert (gain < 0) if "loss" in done.stdout else (gain > 0)
