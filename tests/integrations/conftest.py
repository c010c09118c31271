"""Programs that tests launch are no tests, and need libraries that may be missing."""

collect_ignore_glob = ["*_program.py"]
