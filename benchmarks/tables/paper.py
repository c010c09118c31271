"""Printed numbers, as data.

References:
    J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
    optimization. 2021, Table A2: means and standard deviations over 50 trials, T = 500.
"""

from typing import NamedTuple


class Cell(NamedTuple):
    """One policy at one forgetting rate; deviations are over trials."""

    regret: float  # mean over rounds, R_T / T
    regret_std: float
    queries: float  # C_T
    queries_std: float


FORGETTING_RATES = (0.003, 0.005, 0.01, 0.03, 0.05)
PAPER_SIZE = (50, 500, 1000)  # trials, rounds, points

# Regret, its deviation, queries and their deviation at each of the forgetting rates.
_ROWS = """
R-GP-UCB: .352 .187 499 0 .371 .166 499 0 .425 .118 499 0 .516 .093 499 0 .581 .093 499 0
TV-GP-UCB: .094 .035 499 0 .126 .044 499 0 .184 .056 499 0 .305 .034 499 0 .392 .034 499 0
TV-GP-UCB Ber(0.2): .231 .089 99 8 .275 .084 99 9 .350 .094 97 9 .561 .122 100 9 .694 .090 100 8
TV-GP-UCB Ber(0.3): .176 .093 147 9 .218 .104 150 12 .312 .089 144 10 .485 .089 150 10 .592 .096 153 10
TV-GP-UCB Ber(0.4): .147 .072 200 10 .186 .073 200 10 .275 .090 201 11 .428 .073 203 11 .522 .073 203 9
TV-GP-UCB Ber(0.5): .121 .060 247 10 .160 .061 249 12 .241 .073 252 12 .382 .064 249 12 .480 .058 250 12
TV-GP-UCB Ber(0.6): .119 .055 296 9 .144 .041 300 11 .230 .078 298 11 .363 .045 298 11 .452 .045 298 12
TV-GP-UCB Ber(0.7): .112 .049 348 10 .151 .060 348 11 .209 .068 348 10 .335 .038 350 11 .429 .040 350 9
TV-GP-UCB Ber(0.8): .102 .046 401 9 .140 .058 399 11 .198 .067 399 9 .328 .035 400 8 .415 .037 400 7
TV-GP-UCB Ber(0.9): .098 .048 450 7 .132 .051 449 7 .196 .066 448 7 .311 .036 448 6 .404 .035 449 7
CE-GP-UCB @0.60: .535 .416 8 5 .558 .319 12 7 .600 .289 20 11 .642 .141 53 11 .680 .119 85 17
CE-GP-UCB @0.70: .410 .329 16 11 .435 .253 21 13 .442 .186 41 25 .504 .096 91 21 .533 .071 134 21
CE-GP-UCB @0.75: .341 .249 22 17 .367 .199 34 20 .368 .176 62 27 .441 .077 117 25 .484 .074 167 30
CE-GP-UCB @0.80: .286 .169 31 27 .297 .157 51 36 .304 .117 76 27 .387 .065 146 31 .451 .053 200 30
CE-GP-UCB @0.85: .226 .131 51 41 .248 .095 78 42 .266 .069 101 46 .356 .054 180 34 .416 .041 235 35
CE-GP-UCB @0.90: .188 .089 82 73 .202 .080 101 63 .238 .070 140 48 .322 .045 233 37 .400 .036 291 30
CE-GP-UCB @0.95: .157 .074 125 77 .161 .051 163 73 .210 .052 207 60 .307 .037 310 42 .397 .034 371 29
CE-GP-UCB @0.99: .112 .037 292 104 .128 .030 309 83 .176 .031 363 60 .295 .031 435 26 .386 .033 468 15
CE-GP-UCB @*: .103 .034 386 79 .126 .031 414 50 .168 .033 442 41 .292 .031 482 11 .384 .031 492 7
"""

TABLE_A2: dict[str, dict[float, Cell]] = {
    name: dict(
        zip(FORGETTING_RATES, map(Cell, *[iter(map(float, cells.split()))] * 4), strict=True)
    )
    for name, cells in (row.split(":") for row in _ROWS.strip().splitlines())
}
"""Policy, then forgetting rate, to what is printed."""
