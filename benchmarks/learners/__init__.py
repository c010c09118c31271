"""Which learner is best on all of the data: learning curves over training sizes, from ``lcdb``."""
