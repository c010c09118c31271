"""Populations: several members of one run, tuned together, beside Ray's PB2."""
