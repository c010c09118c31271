"""The ranks beside rank 0 as a part of training, whose states rank 0 keeps and restores."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from botorch_costly.errors import RestoreError, check, shown
from botorch_costly.integrations.ranks import Ranks
from botorch_costly.tuners.twins.parts import Component, Parts

_PLACE = "state"
_DONE = b"done"


class OtherRanks:
    """The other ranks on rank 0: a part whose state is a number, under which each holds its own state.

    All ranks keep, restore and drop a state together. If one of them fails, rank 0 fails, and its session
    decides for all.

    Args:
        ranks: The ranks of the run.

    Attributes:
        is_muted: Whether the other ranks do not listen any more, such as after an exception.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self._commands = ranks, 0
        self.number = 0  # of the next state
        self.is_muted = False

    def state_dict(self) -> dict[str, int]:
        """Make the other ranks keep their present states; return the number of the states.

        Raises:
            RestoreError: If a rank could not copy its state.
        """
        number = self.number
        self.number += 1
        self._command("keep", number)
        return {"number": number}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Make the other ranks restore their states.

        Raises:
            RestoreError: If a rank could not restore its state.
        """
        self._command("restore", state["number"])

    def drop_all_but(self, states: Iterable[Mapping[str, int]]) -> None:
        """Make the other ranks drop all states but these."""
        self._command("drop_all_but", [state["number"] for state in states])

    def _command(self, name: str, argument: Any) -> None:
        if self.is_muted:
            return
        message = {"command": name, "argument": argument}
        self._ranks.receive(json.dumps(message).encode(), _PLACE, self._commands)
        replies = self._ranks.gather(_DONE, _PLACE, self._commands)
        self._commands += 1
        failed = [f"rank {n}: {r.decode()}" for n, r in enumerate(replies) if r != _DONE]
        expected = f"all ranks to {name} their states"
        check(not failed, "ranks", expected, "; ".join(failed), RestoreError)


class ObeyingRank:
    """One of the other ranks: it keeps, restores and drops its states as rank 0 says.

    Args:
        ranks: The ranks of the run.
        parts: The parts of training on this rank.
        device: Device of the copies; that of each part if omitted.

    Attributes:
        held: States by the number of rank 0.
    """

    def __init__(
        self,
        ranks: Ranks,
        parts: Sequence[Component],
        device: torch.device | str | None = None,
    ) -> None:
        self._ranks, self._parts, self._commands = ranks, Parts(parts, device), 0
        self.held: dict[int, list[Any]] = {}

    def obey(self, message: Mapping[str, Any]) -> None:
        """Carry out a command, and tell all ranks whether that was possible."""
        reply = _DONE
        try:
            self._carry_out(message["command"], message["argument"])
        except Exception as error:
            reply = shown(error).encode()
        self._ranks.gather(reply, _PLACE, self._commands)
        self._commands += 1

    def _carry_out(self, command: str, argument: Any) -> None:
        if command == "keep":
            self.held[argument] = self._parts.copied()
        elif command == "restore":
            check(argument in self.held, "state", "one that is held", argument, RestoreError)
            self._parts.restore(self.held[argument], None)  # if it fails, rank 0 has all go back
        else:
            self.held = {number: self.held[number] for number in argument if number in self.held}
            self._parts.drop_all_but(self.held.values())
