"""The maximum information gain by trying every choice of points."""

from itertools import product

import torch


def drifting_covariance(cov, picks, rounds, forgetting):
    """Return the covariance of queries of points in rounds, entry by entry."""
    return torch.stack(
        [
            torch.stack(
                [
                    cov[a, b] * (1 - forgetting) ** (abs(s - t) / 2)
                    for b, t in zip(picks, rounds, strict=True)
                ]
            )
            for a, s in zip(picks, rounds, strict=True)
        ]
    )


def information(cov, picks, rounds, noise, forgetting):
    """Return half the log determinant of ``1 + K / noise``."""
    K = drifting_covariance(cov, picks, rounds, forgetting)
    return 0.5 * torch.logdet(torch.eye(len(picks), dtype=cov.dtype) + K / noise)


def maximum(cov, rounds, noise, forgetting):
    """Return the largest information of one query in each round."""
    choices = product(range(len(cov)), repeat=len(rounds))
    return max(information(cov, picks, rounds, noise, forgetting) for picks in choices)
