"""Where networks are trained that choose for themselves."""

import torch


def accelerator() -> str:
    """Return the kind of the accelerator that this machine has, or "cpu"."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if found is None else found.type
