"""Mean shift, one seed after the other, as Cheng (1995) and Comaniciu & Meer (2002) describe it."""

import torch


def shift(points, weights, bandwidth, seed, max_iter):
    """Follow one seed: move to the mean of the neighbourhood until it stands still."""
    z = seed
    for _ in range(max_iter + 1):
        near = [i for i, x in enumerate(points) if (x - z).square().sum().sqrt() <= bandwidth]
        size = sum(weights[i] for i in near)
        if size == 0:
            return z, 0.0
        mean = sum(weights[i] * points[i] for i in near) / size
        moved = (mean - z).square().sum().sqrt()
        z = mean
        if moved <= 1e-3 * bandwidth:
            break
    return z, float(size)


def mean_shift(points, bandwidth, seeds=None, max_iter=300, weights=None):
    """Return the list of (center, size), largest first, and the label of each point."""
    weights = [1.0] * len(points) if weights is None else weights.tolist()
    if seeds is None:
        seeds = torch.stack([x for x, w in zip(points, weights, strict=True) if w > 0])
    ends = [shift(points, weights, bandwidth, seed, max_iter) for seed in seeds]
    ends = [end for end in ends if end[1] > 0]
    ends.sort(key=lambda end: (end[1], end[0].tolist()), reverse=True)
    modes = []
    for center, size in ends:
        if all((center - other).norm() > bandwidth for other, _ in modes):
            modes.append((center, size))
    labels = [min(range(len(modes)), key=lambda j: (x - modes[j][0]).norm().item()) for x in points]
    return modes, labels
