"""Contrastive learning, one number at a time: loss, optimizer and neighbours, from the papers."""

import math

import torch


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.hypot(*a) * math.hypot(*b))


def nt_xent(first, second, temperature):
    """Chen et al. (2020), eq. (1) and Algorithm 1: a double loop over all views."""
    views = [row.tolist() for pair in zip(first, second, strict=True) for row in pair]
    total = 0.0
    for i, view in enumerate(views):
        partner = i ^ 1  # views 2k and 2k + 1 are of one picture
        others = [
            math.exp(cosine(view, other) / temperature) for k, other in enumerate(views) if k != i
        ]
        total -= math.log(math.exp(cosine(view, views[partner]) / temperature) / sum(others))
    return total / len(views)


def lars(weights, gradients, *, lr, momentum, decay, trust, adapted):
    """You et al. (2017), Algorithm 1, over the steps of the gradients of one tensor."""
    w, v = weights.clone(), torch.zeros_like(weights)
    for gradient in gradients:
        g = gradient.clone()
        if adapted:
            g = g + decay * w
            size, slope = float(w.norm()), float(g.norm())
            ratio = trust * size / slope if size > 0 and slope > 0 else 1.0
        else:
            ratio = 1.0
        v = momentum * v + lr * ratio * g
        w = w - v
    return w


def neighbours(features, targets, classes, k):
    """The share of pictures whose class has most votes among their k nearest others."""
    rows = [row.tolist() for row in features]
    hits, loss = 0, 0.0
    for i, row in enumerate(rows):
        ranked = sorted((-cosine(row, other), j) for j, other in enumerate(rows) if j != i)
        votes = [0] * classes
        for _, j in ranked[:k]:
            votes[int(targets[j])] += 1
        hits += votes.index(max(votes)) == int(targets[i])
        loss -= math.log((votes[int(targets[i])] + 1 / classes) / (k + 1))
    return hits / len(rows), loss / len(rows)
