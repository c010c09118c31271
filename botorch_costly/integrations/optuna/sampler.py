"""A sampler of Optuna that begins where earlier studies ended."""

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.errors import check, check_count
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.optuna.distributions import Distributions
from botorch_costly.task_readers import task_from_optuna
from botorch_costly.task_records import Task
from botorch_costly.transfer_records import TransferDecision
from botorch_costly.tuners import ByEvidence, ByGaps, TransferOptimizer

try:
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace, intersection_search_space
except ImportError:
    BaseSampler = object


class TransferSampler(BaseSampler):
    """Sample with what earlier studies found, and without harm for long if they mislead.

    All that is known is read from the study's storage, so several processes may work on one study, each
    with a sampler of its own; trials that run elsewhere count as under way. A trial that was pruned
    or failed counts as the worst value seen. So does one whose process died, once the storage finds it
    out (``heartbeat_interval``); until then it counts as under way.

    References:
        Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
        UAI 2022.

    Args:
        studies: Earlier studies with one objective, of either direction.
        distributions: Of the parameters; those that all complete trials have, of the study or, before
            there are any, of the earlier studies, if omitted. Other parameters are drawn at random.
        robust: How the share of the earlier studies is decided.
        warm_start: Trials that begin with a portfolio of the earlier studies' best.
        seed: Of randomness. Processes that share a study want different ones.

    Raises:
        InvalidArgumentError: If there is no earlier study with a completed trial, or an argument is
            outside its range; when a trial begins, if the study has several objectives.
        MissingExtraError: If Optuna is missing, or older than 4.0.

    Example::

        study = optuna.create_study(sampler=TransferSampler([earlier_study]), direction="maximize")
        study.optimize(objective, n_trials=50)
    """

    def __init__(
        self,
        studies: Sequence[Any],
        *,
        distributions: Mapping[str, Any] | None = None,
        robust: ByEvidence | ByGaps | None = None,
        warm_start: int = 0,
        seed: int = 0,
    ) -> None:
        require("optuna", "4.0", "optuna")
        listed = isinstance(studies, Sequence) and len(studies) > 0
        check(listed, "studies", "at least one optuna.Study in a list", studies)
        self._tasks = [task_from_optuna(study) for study in studies]  # larger is better
        self._robust = ByEvidence() if robust is None else robust
        self._warm_start = check_count("warm_start", warm_start)
        self._seed = check_count("seed", seed)
        self._given = None if distributions is None else dict(distributions)
        self._earlier = _shared(
            [intersection_search_space(s.get_trials(deepcopy=False)) for s in studies]
        )
        self._intersection = IntersectionSearchSpace()
        self._independent = RandomSampler(seed=seed)
        self._memory: _Memory | None = None
        self._lock = threading.Lock()  # trials of one process may run in threads

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def reseed_rng(self) -> None:
        """Draw from another seed, for a copy of this sampler that works beside it."""
        self._independent.reseed_rng()
        self._seed = int(self._independent._rng.rng.randint(2**31))
        self._memory = None

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the distributions that are sampled together."""
        if self._given is not None:
            return self._given
        found = self._intersection.calculate(study)
        return {name: d for name, d in (found or self._earlier).items() if not d.single()}

    def sample_relative(
        self, study: Any, trial: Any, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the parameters of a trial."""
        one = len(study.directions) == 1
        check(one, "study", "a study with one objective", f"{len(study.directions)} of them")
        if not search_space:
            return {}
        with self._lock:
            memory = self._memory
            if memory is None or memory.names != list(search_space.items()):
                memory = self._memory = self._begin(
                    search_space, study.direction.name == "MAXIMIZE"
                )
            memory.read(study.get_trials(deepcopy=False), trial.number)
            return memory.ask(trial.number)

    def sample_independent(
        self, study: Any, trial: Any, param_name: str, param_distribution: Any
    ) -> Any:
        """Return a parameter at random, as ``RandomSampler``."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def _begin(self, search_space: dict[str, Any], maximize: bool) -> "_Memory":
        distributions = Distributions(search_space)
        sign = 1 if maximize else -1
        translated = [_translated(task, distributions, sign) for task in self._tasks]
        tasks = [task for task in translated if task is not None]
        expected = f"a completed trial of an earlier study within {sorted(search_space)}"
        check(len(tasks) > 0, "studies", expected, "none")
        optimizer = TransferOptimizer(
            distributions.space,
            tasks,
            maximize=maximize,
            robust=self._robust,
            warm_start=self._warm_start,
            seed=self._seed,
        )
        return _Memory(list(search_space.items()), distributions, optimizer)


class _Memory:
    """An optimizer, and which trials it knows."""

    def __init__(
        self,
        names: list[tuple[str, Any]],
        distributions: Distributions,
        optimizer: TransferOptimizer,
    ) -> None:
        self.names, self._distributions, self._optimizer = names, distributions, optimizer
        self._open: dict[int, TransferDecision] = {}  # by number of the trial
        self._done: set[int] = set()

    def read(self, trials: Sequence[Any], now: int) -> None:
        """Learn what the trials of a study have come to, but for the one that begins now."""
        for trial in trials:
            if trial.number == now or trial.number in self._done:
                continue
            self._enter(trial)
            state, decision = trial.state.name, self._open.get(trial.number)
            if state in ("COMPLETE", "FAIL", "PRUNED"):
                self._done.add(trial.number)
                self._open.pop(trial.number, None)
                if decision is not None:
                    value = trial.value if state == "COMPLETE" else math.nan
                    self._optimizer.tell(decision, value)

    def _enter(self, trial: Any) -> None:
        config = self._distributions.config(trial.params)
        decision = self._open.get(trial.number)
        changed = decision is not None and config is not None and dict(decision.config) != config
        if config is not None and (decision is None or changed):
            self._open[trial.number] = self._optimizer.adopt(config)

    def ask(self, number: int) -> dict[str, Any]:
        """Return the parameters of the trial that begins now."""
        decision = self._optimizer.ask()
        self._open[number] = decision
        return self._distributions.params(decision.config)


def _translated(task: Task, distributions: Distributions, sign: int) -> Task | None:
    """Return a task in the configurations of the search space, its values times a sign.

    None if none of its trials fits.
    """
    fits = []
    for tried, value in zip(task.configs, task.values, strict=True):
        config = distributions.config(tried) if isinstance(tried, Mapping) else None
        if config is not None:
            fits.append((config, None if value is None else sign * value))
    if not fits:
        return None
    return Task([config for config, _ in fits], [value for _, value in fits], name=task.name)


def _shared(spaces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the distributions that are the same in all search spaces."""
    first, *others = spaces
    return {n: d for n, d in first.items() if all(space.get(n) == d for space in others)}
