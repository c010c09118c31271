"""Trainings that decide, while they run, what their compute is spent on."""
