"""Small real problems for online tuning."""
