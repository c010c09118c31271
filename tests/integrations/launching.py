"""Programs on two ranks, started as their users start them."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def launched(program, folder, *arguments, ranks=2, seconds=900):
    """Run a program of this folder on some ranks; return what each wrote, None for one that ended."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(ranks), str(Path(__file__).parent / program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(folder), *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    files = [folder / f"{rank}.json" for rank in range(ranks)]
    said = [json.loads(file.read_text()) if file.exists() else None for file in files]
    assert any(one is not None for one in said), done.stderr[-3000:]
    return said
