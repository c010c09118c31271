"""State files of every version, which later versions open: one folder for each version of states."""
