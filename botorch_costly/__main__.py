"""``python -m botorch_costly`` is the command ``botorch-costly``."""

import sys

from botorch_costly.command_line import main

if __name__ == "__main__":
    sys.exit(main())
