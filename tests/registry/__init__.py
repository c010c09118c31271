"""What the laws in ``tests/laws`` hold for, a file for each kind: a new method is one line there."""
