"""A short logged run, and what the tests of loggers read from it."""

import botorch_costly as bc
from botorch_costly.integrations.loggers import LoggedTuner, Logger

SPACE = bc.SearchSpace(
    {"lr": bc.Real(1e-4, 1e-1, log=True), "policy": bc.Choice(["none", 'a, "b"'])}
)


class Memory(Logger):
    """Keeps what it was sent."""

    def __init__(self):
        self.entries, self.begun, self.closed = [], [], 0

    def begin(self, round):
        self.begun.append(round)

    def log(self, entry):
        self.entries.append(entry)

    def close(self):
        self.closed += 1


def online(**options):
    """A tuner with a cap on queries, whose rounds take milliseconds."""
    options = {
        "query": bc.BernoulliQuery(0.4),
        "limits": bc.Limits(max_queries=6),
        "search": bc.Search(num_restarts=2),
        "hold": bc.Hold(share=0.0),
        "design": bc.Design(rounds=2),
        **options,
    }
    return bc.OnlineTuner(SPACE, 30, seed=2, **options)


def reward_of(decision):
    return decision.config["lr"] - 0.01 * decision.round


def play(tuner, rounds, seconds=None):
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, reward_of(decision), seconds=seconds)
    return tuner


def logged(*loggers, **options):
    return LoggedTuner(online(**options), loggers)


def cheap(*loggers, seed=0):
    """A logged tuner that takes no time; each third round of it is told by ``play_cheap``."""
    return LoggedTuner(bc.RandomTuner(SPACE, 30, seed=seed), loggers)


def play_cheap(tuner, rounds):
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.round % 3 == 0:
            tuner.tell(decision, reward_of(decision))
    return tuner


def history(client, run, name):
    """Step and value of everything that was logged of a metric."""
    return [(one.step, one.value) for one in client.get_metric_history(run, name)]
