"""Trainings that are really run: three of reinforcement learning and one of a convolutional network."""
