"""Trainings that are begun, paused and continued."""
