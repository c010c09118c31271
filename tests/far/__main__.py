"""Run a module where the device is: ``python -m tests.far -m MODULE ARGUMENTS``."""

import runpy
import sys

from tests import far

if __name__ == "__main__":
    flag, module, *sys.argv[1:] = sys.argv[1:] if len(sys.argv) > 2 else ("", "")
    if flag != "-m":
        sys.exit("python -m tests.far -m MODULE ARGUMENTS")
    far.enter()
    runpy.run_module(module, run_name="__main__", alter_sys=True)
