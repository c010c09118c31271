"""Trainings that are really run: two of reinforcement learning and one of a convolutional network."""
