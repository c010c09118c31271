"""What explains rewards, cell by cell of the grid, from the text of ``numerics/signal.py``."""

import math

import numpy as np


def explained(targets, correlations, times, signals, trends, rates, levels):
    """Return signal, trend, forgetting, level_noise and the probability of no signal."""
    n, span = len(targets), max(times[-1] - times[0], 1.0)
    contrasts = []
    for matrix in correlations:
        among = [
            [
                matrix[i, j] - matrix[i].mean() - matrix[:, j].mean() + matrix.mean()
                for j in range(n)
            ]
            for i in range(n)
        ]
        contrasts.append(np.array(among) / max(np.trace(among) / n, 1e-9))
    cells = []
    for trend in trends:
        for level in levels:
            cells.append((0.0, trend, math.nan, level, 0))
            for signal in signals:
                for k in range(len(correlations)):
                    for rate in rates:
                        cells.append((signal, trend, rate, level, k))
    none = sum(cell[0] == 0 for cell in cells)
    logs = []
    for signal, trend, rate, level, k in cells:
        covariance = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                lag = abs(times[i] - times[j])
                noise = 1.0 if i == j else -level if abs(i - j) == 1 else 0.0
                rest = trend * math.exp(-0.5 * (4 * lag / span) ** 2) + (1 - trend) * noise
                covariance[i, j] = (1 - signal) * rest
                if signal:
                    covariance[i, j] += signal * contrasts[k][i, j] * (1 - rate) ** (lag / 2)
        # The variance v is integrated out with the prior 1 / v: a gamma integral.
        quadratic = targets @ np.linalg.inv(covariance) @ targets
        log = -0.5 * np.linalg.slogdet(covariance)[1] - n / 2 * math.log(quadratic)
        logs.append(log + math.log(0.5 / (none if signal == 0 else len(cells) - none)))
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    some = np.array([cell[0] > 0 for cell in cells])
    rates_of = np.array([0.0 if math.isnan(cell[2]) else cell[2] for cell in cells])
    return (
        sum(w * cell[0] for w, cell in zip(weight, cells, strict=True)),
        sum(w * (1 - cell[0]) * cell[1] for w, cell in zip(weight, cells, strict=True)),
        (weight * rates_of)[some].sum() / weight[some].sum(),
        sum(w * cell[3] for w, cell in zip(weight, cells, strict=True)),
        weight[~some].sum(),
    )
