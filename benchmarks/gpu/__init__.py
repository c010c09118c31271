"""What needs a GPU: the list of measurements, the command that makes them, one of its own."""
