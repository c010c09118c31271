"""How long decisions, fits and runs take, beside what BoTorch's pieces take for the same."""
