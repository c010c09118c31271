"""Hyperparameter tuning that pays only for the feedback worth its price."""
