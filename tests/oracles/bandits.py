"""Bandit strategies one trial and one number at a time, written from their papers.

Each is asked for an arm by a uniform number and told what its queries found. A uniform number that is
below the share of exploration says so, and, stretched to [0, 1), which arm; so does one above it.
"""

import math

import torch

from tests.oracles import knowledge_gradient


def drawn(probabilities, u):
    """The arm in whose interval of the line from 0 to 1 the number lies."""
    end = 0.0
    for arm, p in enumerate(probabilities):
        end += p
        if u < end:
            return arm
    return max(i for i, p in enumerate(probabilities) if p > 0)


def any_best(scores, u):
    best = [i for i, score in enumerate(scores) if score == max(scores)]
    return best[math.floor(u * len(best))]


class Means:
    """All queries of each arm, with their rounds; forgetting makes old ones count less."""

    explored = False

    def __init__(self, n, forgetting=0.0):
        self.told = [[] for _ in range(n)]
        self.forgetting = forgetting

    def weight(self, arm, now):
        return sum((1 - self.forgetting) ** (now - t) for t, _ in self.told[arm])

    def mean(self, arm):
        pairs = self.told[arm]
        if not pairs:
            return 0.0
        weights = [(1 - self.forgetting) ** (pairs[-1][0] - t) for t, _ in pairs]
        return sum(w * x for w, (_, x) in zip(weights, pairs, strict=True)) / sum(weights)

    def learn(self, arm, reward, now):
        self.told[arm].append((now, reward))


class UCB1(Means):
    """Auer, Cesa-Bianchi & Fischer (2002), Figure 1; with forgetting, Garivier & Moulines (2011)."""

    def __init__(self, n, forgetting=0.0, scale=1.0):
        super().__init__(n, forgetting)
        self.scale = scale

    def decide(self, u, now):
        weights = [self.weight(arm, now) for arm in range(len(self.told))]
        total = max(sum(weights), 1.0)
        bounds = [
            self.mean(arm) + self.scale * math.sqrt(2 * math.log(total) / w) if w > 0 else math.inf
            for arm, w in enumerate(weights)
        ]
        return any_best(bounds, u), 1.0


class EpsilonGreedy(Means):
    """Kuleshov & Precup (2000), section 2."""

    def __init__(self, n, epsilon, forgetting=0.0):
        super().__init__(n, forgetting)
        self.epsilon = epsilon

    def decide(self, u, now):
        n = len(self.told)
        means = [self.mean(arm) for arm in range(n)]
        self.explored = u < self.epsilon
        if self.explored:
            arm = math.floor(u / self.epsilon * n)
        else:
            arm = any_best(means, (u - self.epsilon) / (1 - self.epsilon))
        ties = means.count(max(means))
        greedy = (1 - self.epsilon) / ties if means[arm] == max(means) else 0.0
        return arm, self.epsilon / n + greedy


class Softmax(Means):
    """Kuleshov & Precup (2000), section 2."""

    def __init__(self, n, temperature, forgetting=0.0):
        super().__init__(n, forgetting)
        self.temperature = temperature

    def decide(self, u, now):
        powers = [math.exp(self.mean(arm) / self.temperature) for arm in range(len(self.told))]
        chances = [power / sum(powers) for power in powers]
        arm = drawn(chances, u)
        return arm, chances[arm]


class EXP3S:
    """Auer, Cesa-Bianchi, Freund & Schapire (2002), section 8."""

    def __init__(self, n, gamma, alpha=0.0):
        self.gamma, self.alpha, self.weights = gamma, alpha, [1.0] * n

    def decide(self, u, now):
        n, total = len(self.weights), sum(self.weights)
        by_weight = [w / total for w in self.weights]
        if u < self.gamma:
            self.explored, arm = True, math.floor(u / self.gamma * n)
        else:
            self.explored, arm = False, drawn(by_weight, (u - self.gamma) / (1 - self.gamma))
        return arm, (1 - self.gamma) * by_weight[arm] + self.gamma / n

    def learn(self, arm, reward, now):
        n, total = len(self.weights), sum(self.weights)
        p = (1 - self.gamma) * self.weights[arm] / total + self.gamma / n
        x = min(max(reward, 0.0), 1.0) / p
        gift = math.e * self.alpha / n * total
        for j in range(n):
            up = math.exp(self.gamma * x / n) if j == arm else 1.0
            self.weights[j] = self.weights[j] * up + gift


class EXP3R(EXP3S):
    """Allesiardo & Féraud (2015), algorithms 2 and 3, on EXP3."""

    def __init__(self, n, gamma, interval, delta):
        super().__init__(n, gamma)
        self.interval, self.delta, self.resets = interval, delta, 0
        self.seen = [[] for _ in range(n)]

    def learn(self, arm, reward, now):
        super().learn(arm, reward, now)
        n = len(self.weights)
        if self.explored:
            self.seen[arm].append(min(max(reward, 0.0), 1.0))
        if min(len(one) for one in self.seen) < self.gamma * self.interval / n:
            return
        means = [sum(one) / len(one) for one in self.seen]
        width = math.sqrt(n * math.log(1 / self.delta) / (2 * self.gamma * self.interval))
        most_played = self.weights.index(max(self.weights))
        if any(mean - means[most_played] >= 2 * width for mean in means):
            self.weights, self.resets = [1.0] * n, self.resets + 1
        self.seen = [[] for _ in range(n)]


def arm_process(arms, phi, std, noise, told, now):
    """Mean and covariance of all arms in a round, and the level, by dense algebra.

    ``told`` are (round, arm, reward), ``phi`` is a function of the lag in rounds.
    """
    n, level, precision = len(arms), 0.5, 1 / 0.3**2
    arms = torch.as_tensor(arms, dtype=torch.float64)
    prior = std**2 * arms
    if not told:
        return torch.full((n,), level, dtype=torch.float64), prior, level
    size = len(told)
    K = torch.zeros(size, size, dtype=torch.float64)
    cross = torch.zeros(n, size, dtype=torch.float64)
    for i, (t, a, _) in enumerate(told):
        for j, (s, b, _) in enumerate(told):
            K[i, j] = std**2 * arms[a, b] * phi(abs(t - s)) + noise**2 * (i == j)
        for b in range(n):
            cross[b, i] = std**2 * arms[b, a] * phi(abs(now - t))
    y = torch.tensor([reward for *_, reward in told], dtype=torch.float64)
    inverse = torch.linalg.inv(K)
    level = float((inverse.sum(0) @ y + precision * level) / (inverse.sum() + precision))
    mean = level + cross @ inverse @ (y - level)
    return mean, prior - cross @ inverse @ cross.mT, level


def sample_belief(told, n, forgetting, now):
    """Means and variances of arms: a prior N(1/2, 1/4), and of each query its share of a normal one.

    ``told`` are (round, arm, reward); a reward has variance 1/4, and a weight of w counts like w queries.
    """
    precision, weighted = [4.0] * n, [4.0 * 0.5] * n
    for t, arm, reward in told:
        share = 4.0 * (1 - forgetting) ** (now - t)
        precision[arm] += share
        weighted[arm] += share * reward
    return [w / p for w, p in zip(weighted, precision, strict=True)], [1 / p for p in precision]


def proposal(belief, advised, outlook, plays_mean, chooses):
    """What a round plays with a query and without, and mean, gain and lookahead of the query.

    ``belief`` are the mean, covariance, prior covariance, noise variance and forgetting rate of a trial,
    ``outlook`` the effective horizon, price and lookahead weight, or None; all in units of the reward.
    """
    mean, cov, prior_cov, noise, forgetting = belief
    best = mean.index(max(mean))
    if outlook is None:
        return advised, best if plays_mean else advised, None
    horizon, price, weight = outlook
    keep = math.sqrt(1 - forgetting)
    found = {}
    for arm in range(len(mean)) if chooses else [advised]:
        gain = knowledge_gradient.knowledge_gradient(mean, cov, arm, noise)
        terms = mean, cov, prior_cov, arm, noise, keep, horizon, price
        found[arm] = mean[arm], gain, knowledge_gradient.lookahead(*terms) if weight else 0.0
    at = max(
        found, key=lambda arm: found[arm][0] + horizon * found[arm][1] + weight * found[arm][2]
    )
    return at, best, found[at]
