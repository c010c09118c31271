"""Tune a support vector machine of scikit-learn, beginning with a study of a similar table.

The machine was tuned on the digits 0 to 4. Now it is to tell the digits 5 to 9 apart, with two trainings:
at random, and by a search that begins with the earlier study, with five seeds.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import botorch_costly as bc

TRAININGS = 2
SPACE = bc.SearchSpace({"C": bc.Real(1e-3, 1e3, log=True), "gamma": bc.Real(1e-6, 1.0, log=True)})


def tables_of(digits):
    """Return pixels and labels to train, to validate and to test, from data that scikit-learn has."""
    pixels, labels = load_digits(return_X_y=True)
    rows = np.isin(labels, digits)
    train, pixels, train_labels, labels = train_test_split(
        pixels[rows], labels[rows], train_size=300, random_state=0
    )
    return (train, train_labels), (pixels[:250], labels[:250]), (pixels[250:], labels[250:])


def accuracy(config, train, other):
    return SVC(**config).fit(*train).score(*other)


def random_configs(count, seed):
    generator = np.random.default_rng(seed)
    exponents = generator.uniform([-3, -6], [3, 0], (count, 2))
    return [{"C": 10.0**c, "gamma": 10.0**gamma} for c, gamma in exponents]


def searched(earlier, train, validation, seed):
    search = bc.TransferOptimizer(SPACE, [earlier], seed=seed)
    for _ in range(TRAININGS):
        ask = search.ask()
        search.tell(ask, accuracy(ask.config, train, validation))
    return search.best()


def main():
    train, validation, _ = tables_of([0, 1, 2, 3, 4])
    configs = random_configs(20, seed=0)
    earlier = bc.Task(configs, [accuracy(config, train, validation) for config in configs])
    train, validation, test = tables_of([5, 6, 7, 8, 9])
    for seed in range(1, 6):
        tried = random_configs(TRAININGS, seed)
        best = max(tried, key=lambda config: accuracy(config, train, validation))
        at_random = accuracy(best, train, test)
        after_study = accuracy(searched(earlier, train, validation, seed), train, test)
        print(f"test accuracy without the study: {at_random:.3f}, with it: {after_study:.3f}")


if __name__ == "__main__":
    main()
