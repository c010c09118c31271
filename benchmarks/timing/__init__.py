"""How long decisions take, beside what BoTorch's pieces take for the same."""
