"""Draw the pictures of ``guide/pictures.md`` by the code of that page: ``python docs/pictures.py``.

The run is that of ``botorch-costly demo``, so the block that makes one is left out.
"""

import os
import re
import tempfile
from pathlib import Path

import botorch_costly as bc
from botorch_costly import demo, plotting, tuners

GUIDE = Path(__file__).parent / "guide"


def main() -> None:
    """Run the demo, and every block but the first."""
    page = (GUIDE / "pictures.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S)
    query = bc.PricedQuery(budget=demo.ROUNDS // 4)
    tuner = bc.OnlineTuner(demo.SPACE, demo.ROUNDS, start=demo.BAD, query=query)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.pt"
        demo.demo(print, path=path)
        tuner.load(path)
    names = {"bc": bc, "plotting": plotting, "tuners": tuners, "tuner": tuner}
    names |= {"names": tuner.space.names, "log": tuner.space.rates}
    (GUIDE / "images").mkdir(exist_ok=True)
    os.chdir(GUIDE / "images")
    for block in blocks[1:]:
        exec(block, names)


if __name__ == "__main__":
    main()
