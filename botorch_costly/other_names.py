"""Names in other libraries for arguments, methods and classes of this package, for messages of errors."""

import difflib
from collections.abc import Collection, Mapping

_DIRECTION = (
    "direction mode objective goal minimize minimise maximise larger_is_better lower_is_better"
)
_OUTCOME = (
    "loss losses score accuracy objective result y error value values metric metrics reward curve"
)
_ROUNDS = (
    "rounds n_rounds num_rounds epochs n_epochs num_epochs max_epochs steps n_steps num_steps "
)
_ROUNDS += "max_steps total_steps iterations n_iter num_iterations max_iter max_iterations"
_TRIALS = (
    "n_trials num_trials max_trials trials n_calls n_evals max_evals evaluations num_samples budget"
)

# For each argument, the words that stand for it elsewhere.
ARGUMENTS: Mapping[str, str] = {
    "horizon": f"{_ROUNDS} {_TRIALS}",
    "iterations": f"{_ROUNDS} max_t max_resource",
    "steps": f"{_ROUNDS} horizon",
    "seconds": "timeout time time_limit max_time time_budget duration",
    "seed": "random_state random_seed rng generator",
    "maximize": f"{_DIRECTION} metric kind",
    "metric": f"{_DIRECTION} {_OUTCOME} maximize kind monitor",
    "kind": f"{_DIRECTION} metric maximize",
    "start": "default initial init initial_config x0 config baseline",
    "queries": "query max_queries query_rate",
    "overhead": "budget share fraction",
    "members": "population population_size pop_size n_members num_members workers n_workers",
    "space": "search_space param_space parameters params domain bounds",
    "reward": f"{_OUTCOME} rewards gain",
    "value": _OUTCOME,
    "metrics": f"{_OUTCOME} rewards",
    "curve": _OUTCOME,
    "cost": "price time seconds duration",
    "decision": "trial suggestion config params",
    "suggestion": "trial decision config params",
    "train_loss": "loss training_loss value",
    "step": "iteration epoch batch round",
    "round": "iteration epoch step decision",
    "log": "log_scale scale logarithmic prior distribution",
    "low": "min minimum lower lower_bound",
    "high": "max maximum upper upper_bound",
    "options": "choices values categories",
    "kappa": "confidence threshold level probability",
    "rate": "probability p share",
}

# For each method or property, the words that stand for it elsewhere.
METHODS: Mapping[str, str] = {
    "ask": "suggest get_next get_next_trial propose sample generate create_trial",
    "tell": "observe register report record update complete complete_trial add set_result step",
    "best": "best_params best_config best_trial best_value best_parameters best_score best_result "
    "get_best incumbent",
    "history": "trials results get_history log trials_dataframe",
    "is_over": "done finished stop stopped is_done is_finished",
    "should_stop": "stop early_stop is_over",
    "due": "should_validate is_due check step ask",
    "summary": "report describe info",
    "config": "params parameters hyperparameters hparams configuration",
    "fidelities": "budget resource",
    "iterations": "epochs steps budget resource",
    "round": "step iteration number trial_id index",
}

# For each class, the words that stand for it elsewhere.
CLASSES: Mapping[str, str] = {
    "Real": "Float Uniform LogUniform Continuous Double",
    "Integer": "Int IntUniform Range",
    "Choice": "Categorical Discrete Options",
    "SearchSpace": "Space ParameterSpace ConfigSpace ConfigurationSpace",
}


def names_here(word: str, names: Collection[str], words: Mapping[str, str]) -> list[str]:
    """Return the names that a word stands for elsewhere; without one, the name it misspells.

    Args:
        word: Word of another library, or a misspelled name.
        names: Names to choose from.
        words: ``ARGUMENTS``, ``METHODS`` or ``CLASSES``.

    Example:
        >>> names_here("n_trials", ["space", "horizon"], ARGUMENTS)
        ['horizon']
        >>> names_here("horizont", ["space", "horizon"], ARGUMENTS)
        ['horizon']
    """
    meant = [name for name in names if word in words.get(name, "").split()]
    return meant or difflib.get_close_matches(word, names, n=1, cutoff=0.75)


def is_direction(word: str) -> bool:
    """Return whether a word says which values are better, such as ``maximize``."""
    return word in ARGUMENTS["maximize"].split() or word == "maximize"
