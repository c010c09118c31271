"""Trainings on parts of the data that are run while the search goes on."""
