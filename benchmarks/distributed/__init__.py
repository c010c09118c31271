"""Decisions that the ranks of a distributed run share."""
