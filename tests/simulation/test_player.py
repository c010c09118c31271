"""One loop drives every player; a history is played in place of the decisions of a player."""

import torch

from botorch_costly.bandits import UCB1, BanditPlayer, BanditPolicy
from botorch_costly.query import BernoulliQuery
from botorch_costly.simulation import Decided, drive

TRIALS, ROUNDS = 2, 6


class Always:
    """Plays one point, queries in even rounds, and records the rounds that it takes in."""

    def __init__(self, where):
        self.where, self.taken_in, self.now = torch.tensor(where), [], 0

    def decide(self, chance):
        assert chance.coin.shape == chance.luck.shape == (TRIALS,)
        self.now += 1
        return Decided(self.where, torch.full_like(self.where, self.now % 2, dtype=torch.bool))

    def take_in(self, at, reward, query):
        self.taken_in.append((at.tolist(), reward.tolist(), query.tolist()))


def world():
    draws = torch.Generator().manual_seed(0)
    values = torch.rand(TRIALS, ROUNDS, 3, generator=draws, dtype=torch.float64)
    noise, coins, luck = torch.rand(3, TRIALS, ROUNDS, generator=draws, dtype=torch.float64)
    return values, noise, coins, luck


def test_a_player_is_told_what_it_played_with_noise():
    values, noise, coins, luck = world()
    player = Always([2, 0])
    rounds = drive(player, values, noise, coins, luck)
    assert rounds.value.equal(torch.stack([values[0, :, 2], values[1, :, 0]]))
    assert rounds.query[0].tolist() == [True, False] * 3
    at, reward, query = player.taken_in[3]
    assert (at, query) == ([2, 0], [False, False])
    assert reward == [float(values[i, 3, k] + noise[i, 3]) for i, k in enumerate((2, 0))]


def test_several_policies_share_a_program():
    values, noise, coins, luck = world()
    player = Always([[2, 0], [1, 1], [0, 2]])
    rounds = drive(player, values, noise, coins, luck)
    assert rounds.value.shape == (3, TRIALS, ROUNDS)
    assert rounds.value[2, 1].equal(values[1, :, 2])


def test_a_history_is_played_and_the_player_says_what_it_would_have_done():
    values, noise, coins, luck = world()
    player = Always([2, 0])
    history = Decided(
        torch.ones(TRIALS, ROUNDS, dtype=torch.long), torch.ones(TRIALS, ROUNDS, dtype=torch.bool)
    )
    rounds = drive(player, values, noise, coins, luck, history)
    assert rounds.choice[0].tolist() == [2] * ROUNDS
    assert rounds.value.equal(values[:, :, 1])
    assert all(at == [1, 1] and query == [True, True] for at, _, query in player.taken_in)


def test_a_bandit_is_a_player_too():
    policy = BanditPolicy("", UCB1(), BernoulliQuery(0.5))
    values, noise, coins, luck = world()
    rounds = drive(BanditPlayer(policy, TRIALS, 3, ROUNDS), values, noise, coins, luck)
    assert rounds.query.equal(coins < 0.5)
