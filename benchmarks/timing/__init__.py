"""How long things take, against BoTorch in the same process."""
