"""Write the state files of this version: ``python -m tests.state_files.write``. Files that exist stay."""

import json
from pathlib import Path

import botorch_costly as bc
from botorch_costly.ask_tell.state import STATE_VERSION
from tests.state_files.optimizers import MAKERS, ROUNDS, facts_of, play

FOLDER = Path(__file__).parent / str(STATE_VERSION)


def main() -> None:
    """Write a state and its facts for each optimizer that has none in this version."""
    for name, make in MAKERS.items():
        path = FOLDER / f"{name}.pt"
        if path.exists():
            continue
        optimizer = make()
        play(optimizer, ROUNDS)
        bc.save(path, optimizer=optimizer)
        path.with_suffix(".json").write_text(json.dumps(facts_of(optimizer)) + "\n")


if __name__ == "__main__":
    main()
