"""Pictures are files, and Matplotlib is needed for them alone."""

import subprocess
import sys

import pytest

from botorch_costly import plotting

pytest.importorskip("matplotlib")


def test_pictures_can_be_saved(decisions, belief, tmp_path):
    x, mean, _ = belief
    none = plotting.Marks([], [], [])
    for i, ax in enumerate(
        [
            plotting.plot_schedule(decisions, observations=[])[0],
            plotting.plot_queries(decisions),
            plotting.plot_belief(*belief, queries=plotting.Marks(x, mean, [0] * 11), skips=none),
        ]
    ):
        ax.figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 1000


@pytest.mark.slow
def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, botorch_costly.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_missing_extra_is_named(decisions, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install 'matplotlib"):
        plotting.plot_queries(decisions)
