"""When to tune: a self-tuning network in training, and what decides between its two kinds of steps."""
