"""How long updates, decisions, fits and runs take, beside what BoTorch's pieces take for the same."""
