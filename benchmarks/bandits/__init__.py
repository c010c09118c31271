"""Bandits over arms whose rewards drift."""
