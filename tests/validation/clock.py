"""A run with a clock that the test moves: training and validation have prices."""

import torch

import botorch_costly as bc


class Clock:
    """A function that returns seconds, which the test adds."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


class Run:
    """A training whose validation losses are a function of the step; records what was read."""

    def __init__(self, curve, *, price=2.0, step_seconds=1.0, noise=0.0, seed=0, **options):
        self.curve, self.price, self.step_seconds = curve, price, step_seconds
        self.clock = Clock()
        self.validation = bc.Validation(clock=self.clock, **options)
        self.generator = torch.Generator().manual_seed(seed)
        self.noise, self.read, self.best = noise, [], []

    def losses(self, step):
        """Return the losses of all examples, with common differences of the examples."""
        count = self.validation.options.examples
        base = torch.linspace(0.5, 1.5, count, dtype=torch.float64)
        base = base[torch.randperm(count, generator=torch.Generator().manual_seed(9))]
        return base * self.curve(step) + self.noise * torch.randn(
            count, generator=self.generator, dtype=torch.float64
        )

    def step(self, step, *, training=True, last=False):
        """Train, and validate if it is due."""
        self.clock.seconds += self.step_seconds
        loss = 1.1 * self.curve(step) if training else None
        if not self.validation.due(step, train_loss=loss, last=last):
            return False
        self.read.append(step)
        if self.validation.options.examples is None:
            self.clock.seconds += self.price
            self.validation.tell(self.curve(step))
        else:
            losses = self.losses(step)
            while self.validation.examples:
                examples = self.validation.examples
                self.clock.seconds += self.price * len(examples) / len(losses)
                self.validation.tell(losses[examples])
        if self.validation.is_best:
            self.best.append(step)
        return True

    def play(self, steps, begin=0, **options):
        """Play the steps from ``begin`` up to ``steps``."""
        for step in range(begin, steps):
            self.step(step, **options)
        return self


def falling(step):
    """Return a loss that falls like a power of the steps."""
    return 2.0 * (1 + step) ** -0.3


def turning(step):
    """Return a loss that falls up to step 400, and rises again."""
    return falling(step) if step < 400 else falling(400) + 0.002 * (step - 400)
