"""Run the tests of each extra where only the built package, this extra and pytest are installed.

``python -m tests.extras [EXTRA ...]`` makes the environments in ``out/extras``. The first, ``core``, has
the package and what it requires, several gigabytes; each of the others takes that up by a path file
and adds its extra alone. Tests run in a copy without the package's source: they import the wheel.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("pytest", "hypothesis")
PAGE = "tests/test_docs.py::test_code_of_pages_runs"
PAGES_OF_RUNS = "tests/laws/test_room_laws.py::test_a_saved_run_is_a_page_to_look_into"
ADAPTERS = "tests/integrations"
BENCHMARKS = "tests/benchmarks"
# Of each extra: a module that it brings, and the tests that need it.
EXTRAS = {
    "core": ("botorch_costly", [ADAPTERS, "tests/reports", "tests/test_canonical.py"]),
    "plot": ("matplotlib", ["tests/plotting", "tests/reports"]),
    "plotly": ("plotly", ["tests/reports", PAGES_OF_RUNS]),
    "rich": ("rich", ["tests/reports"]),
    "tensorboard": ("tensorboard", [f"{ADAPTERS}/loggers"]),
    "wandb": ("wandb", [f"{ADAPTERS}/loggers"]),
    "mlflow": ("mlflow", [f"{ADAPTERS}/loggers"]),
    "optuna": (
        "optuna",
        [
            f"{ADAPTERS}/test_optuna.py",
            f"{ADAPTERS}/test_optuna_spaces.py",
            f"{ADAPTERS}/test_optuna_lengths_and_parts.py",
            f"{ADAPTERS}/test_optuna_checkpoints.py",
            f"{ADAPTERS}/test_optuna_pruner.py",
            "tests/task_readers",
            f"{PAGE}[optuna]",
        ],
    ),
    "ax": ("ax", [f"{ADAPTERS}/test_ax.py", "tests/task_readers", f"{PAGE}[ax]"]),
    "ray": ("ray.tune", [f"{ADAPTERS}/test_ray.py", f"{PAGE}[ray]"]),
    "lightning": (
        "lightning.pytorch",
        [
            f"{ADAPTERS}/test_lightning.py",
            f"{ADAPTERS}/test_lightning_fits.py",
            f"{ADAPTERS}/test_lightning_twins.py",
            f"{ADAPTERS}/validation/test_lightning.py",
            f"{PAGE}[lightning]",
        ],
    ),
    "transformers": (
        "transformers",
        [
            f"{ADAPTERS}/test_transformers.py",
            f"{ADAPTERS}/test_transformers_fits.py",
            f"{ADAPTERS}/test_transformers_twins.py",
            f"{ADAPTERS}/validation/test_transformers.py",
            f"{PAGE}[transformers]",
        ],
    ),
    "demo": ("sklearn", [f"{BENCHMARKS}/test_demo.py", f"{BENCHMARKS}/test_augmentation.py"]),
    "vision": ("torchvision", [f"{BENCHMARKS}/test_simclr_parts.py"]),
    "all": ("ray.tune", [ADAPTERS, PAGE]),
}


class Environments:
    """Environments in a folder, each made anew.

    ``constraints`` are options of pip, such as ``["-c", "constraints.txt"]``.
    """

    def __init__(self, folder, constraints):
        self.folder, self.constraints = folder, constraints
        self.copy = folder / "copy"

    def make_wheel(self):
        """Build the package from a copy, for an older build in the folder would get into the wheel."""
        source = self.folder / "source"
        for folder in (source, self.copy, self.folder / "wheel"):
            shutil.rmtree(folder, ignore_errors=True)
        ignored = shutil.ignore_patterns("__pycache__", ".*", "build", "dist", "out", "*.egg-info")
        shutil.copytree(ROOT, source, ignore=ignored)
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
        run([*wheel, "-w", self.folder / "wheel", source])
        source.rename(self.copy)
        shutil.rmtree(self.copy / "botorch_costly")

    def make(self, extra, keep=False):
        """Make the environment of an extra, unless it is kept but for the package; return its Python."""
        folder = self.folder / extra
        if keep and folder.exists():
            self.install(
                folder / "bin" / "python", "--force-reinstall", "--no-deps", *self.wheels()
            )
            return folder / "bin" / "python"
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder])
        python = folder / "bin" / "python"
        (wheel,) = self.wheels()
        if extra == "core":
            self.install(python, wheel)
            # The package alone can be used from the shell, and nothing that it needs is missing.
            for words in ("--help", "demo --rounds 8 --save run.pt --force", "report run.pt"):
                run([folder / "bin" / "botorch-costly", *words.split()], cwd=self.folder)
        else:
            take_up(self.folder / "core", folder)
            self.install(python, f"{wheel}[{extra}]")
        run([python, "-m", "pip", "check"])
        return python

    def wheels(self):
        return list((self.folder / "wheel").glob("*.whl"))

    def install(self, python, *wanted):
        run([python, "-m", "pip", "install", "-q", *self.constraints, *wanted])

    def test(self, extra, python, slow):
        """Run the tests of an extra; return whether they passed and pytest's last line."""
        library, tests = EXTRAS[extra]
        # Tests skip where a library is missing; here it must be there.
        run([python, "-c", f"import {library}, botorch_costly"], cwd=self.copy)
        if extra == "core":
            python = self.make_tools()
        else:
            self.install(python, *TOOLS)
        marks = [] if slow else ["-m", "not slow"]
        command = [python, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *marks, *tests]
        done = subprocess.run(command, cwd=self.copy, stdout=subprocess.PIPE, text=True)
        print(done.stdout)
        return done.returncode == 0, done.stdout.strip().splitlines()[-1]

    def make_tools(self):
        """Make an environment with the core and pytest, which the core itself must do without."""
        folder = self.folder / "tools"
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder])
        take_up(self.folder / "core", folder)
        self.install(folder / "bin" / "python", *TOOLS)
        return folder / "bin" / "python"


def run(command, **options):
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), check=True, **options)


def take_up(core, folder):
    """Let an environment import what another one has."""
    (there,), (here,) = ((one / "lib").glob("python3*/site-packages") for one in (core, folder))
    (here / "core.pth").write_text(f"{there}\n")


def size(folder):
    """Gigabytes of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "extras", nargs="*", metavar="EXTRA", help=f"of {[*EXTRAS]}, all if omitted"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "extras")
    parser.add_argument("--keep-core", action="store_true", help="but for the package itself")
    parser.add_argument(
        "--unpinned", action="store_true", help="the newest versions that pip finds"
    )
    parser.add_argument("--slow", action="store_true", help="the slow tests, too")
    given = parser.parse_args()
    wanted = given.extras or [*EXTRAS]
    if unknown := set(wanted) - EXTRAS.keys():
        parser.error(f"Expected extras among {[*EXTRAS]}; Received {sorted(unknown)}.")
    constraints = [] if given.unpinned else ["-c", ROOT / "constraints.txt"]
    environments = Environments(given.folder.resolve(), constraints)
    environments.make_wheel()
    rows, good = [], True
    for extra in dict.fromkeys(["core", *wanted]):
        began = made = time.perf_counter()
        passed, line = True, "not tested"
        try:
            python = environments.make(extra, keep=extra == "core" and given.keep_core)
            made = time.perf_counter()
            if extra in wanted:
                passed, line = environments.test(extra, python, given.slow)
        except subprocess.CalledProcessError as error:
            passed, line = False, f"failed: {error}"
        good = good and passed
        seconds = f"{made - began:4.0f} s to install, {time.perf_counter() - made:4.0f} s of tests"
        gigabytes = size(environments.folder / extra)
        rows.append(f"{extra:13}{gigabytes:5.2f} GB, {seconds}: {line}")
        print(rows[-1], flush=True)
    print("", *rows, sep="\n")
    sys.exit(not good)


if __name__ == "__main__":
    main()
