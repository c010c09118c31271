"""Configurations and training lengths chosen from learning curves."""
