"""Small training programs whose validation losses are recorded for each example."""
