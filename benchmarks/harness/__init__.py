"""What the benchmarks share, each thing once."""
