"""Related tasks, on which what was learnt of some may help with another."""
