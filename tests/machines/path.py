"""A part of a training run that is nothing but its history: whether it went back is seen at once."""


class Path:
    """The rounds that made the present state; two states are equal if their paths are."""

    def __init__(self):
        self.rounds = ()
        self.fails = False

    def train(self, number):
        self.rounds = (*self.rounds, number)

    def state_dict(self):
        return {"rounds": list(self.rounds)}

    def load_state_dict(self, state):
        if self.fails:
            raise RuntimeError("this part does not go back")
        self.rounds = tuple(state["rounds"])
