"""How long a configuration is held: the later in a run, the more rounds it takes to tell a difference."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from botorch_costly.errors import check_count, check_rate


class Place(NamedTuple):
    """Where a round lies in its move, the rounds for which one configuration is held."""

    move: int  # number of the move, from 0
    first: int  # round of the move
    length: int  # rounds of the move

    def is_last(self, round: int) -> bool:
        """Return whether the move ends with this round."""
        return round == self.first + self.length - 1


class Moves:
    """Moves that last a share of the rounds before them, and at least some rounds.

    What a network gains in a round falls about as one over the rounds it has trained, and the
    noise of a look does not. A move that lasts a share of the run so far gains about the same early
    and late, and a run of ``T`` rounds has about ``(1 + log(share T)) / share`` of them.

    Args:
        share: Of the rounds so far, in [0, 1]; at 0 each round is a move.
        horizon: Where the last move ends, if anybody knows.
        shortest: Rounds of a move, unless the share is 0.

    Example:
        >>> moves = Moves(0.5)
        >>> [moves.at(round).move for round in range(10)]
        [0, 1, 2, 3, 4, 4, 5, 5, 5, 6]
    """

    def __init__(self, share: float, horizon: int | None = None, shortest: int = 1) -> None:
        self.share, self._horizon = check_rate("hold", share), horizon
        self.shortest = check_count("shortest_hold", shortest, minimum=1)
        self._firsts = [0]

    def at(self, round: int) -> Place:
        """Return the move that a round belongs to."""
        if self.share == 0:
            return Place(round, round, 1)
        while self._firsts[-1] <= round:
            self._extend()
        move = bisect_right(self._firsts, round) - 1
        return Place(move, self._firsts[move], self._length(self._firsts[move]))

    def first_of(self, move: int) -> int:
        """Return the first round of a move."""
        if self.share == 0:
            return move
        while len(self._firsts) <= move:
            self._extend()
        return self._firsts[move]

    def lengths(self, moves: Iterable[int]) -> list[int]:
        """Return how many rounds each of the moves lasts."""
        if self.share == 0:
            return [1 for _ in moves]
        return [self._length(self.first_of(move)) for move in moves]

    def within(self, rounds: int) -> int:
        """Return how many moves begin within so many rounds."""
        return self.at(rounds - 1).move + 1 if rounds else 0

    def _extend(self) -> None:
        self._firsts.append(self._firsts[-1] + self._length(self._firsts[-1]))

    def _length(self, first: int) -> int:
        length = max(self.shortest, int(self.share * first))
        return length if self._horizon is None else max(1, min(length, self._horizon - first))
