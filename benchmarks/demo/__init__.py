"""``make demo``: what a user gets, and how the run ends with other tuners and without any."""
