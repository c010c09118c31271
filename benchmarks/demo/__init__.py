"""``make demo``: what a user gets, and what the same run is worth without it."""
