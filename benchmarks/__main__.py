"""Run a benchmark by name: ``python -m benchmarks <name> [options]``; without a name, list them."""

import sys
from collections.abc import Sequence
from importlib import import_module

REGISTRY: dict[str, tuple[str, str]] = {
    "demo": (
        "benchmarks.demo.demo",
        "a network tunes its own augmentation, and pays for its queries",
    ),
    "table-a2": ("benchmarks.tables.table_a2", "regret and queries of CE-GP-UCB and its rivals"),
    "table-a1": (
        "benchmarks.bandits.table_a1",
        "regret and queries of bandits on arms whose rewards drift",
    ),
    "table-a2-loop": (
        "benchmarks.tables.table_a2_loop",
        "the same rounds by a loop over BoTorch models",
    ),
    "single-precision": (
        "benchmarks.tables.single_precision",
        "decisions that single precision shares with double",
    ),
    "figure-1": ("benchmarks.tables.figure_1", "regret against queries, with EI and PI"),
    "figure-a3": ("benchmarks.tables.figure_a3", "belief, queries and skips in one run"),
    "priced": (
        "benchmarks.priced.frontier",
        "the value of a query against its price, and confidence",
    ),
    "priced-effective-horizon": (
        "benchmarks.priced.effective_horizon",
        "how long the gain of a query counts",
    ),
    "priced-budget": ("benchmarks.priced.budget", "queries spent of a budget, and regret"),
    "priced-arms": ("benchmarks.priced.arms", "both rules among three arms"),
    "priced-continuous": ("benchmarks.priced.continuous", "both rules in 4 and 8 dimensions"),
    "priced-misspecified": ("benchmarks.priced.misspecified", "both rules on wrong beliefs"),
    "priced-picture": (
        "benchmarks.priced.picture",
        "the value of a query at each point, in one picture",
    ),
    "priced-time": ("benchmarks.priced.timing", "milliseconds of a decision under either rule"),
    "online-suite": (
        "benchmarks.suite.benchmark",
        "how far tuning gets on small real problems",
    ),
    "online-suite-picture": (
        "benchmarks.suite.picture",
        "where each run of the suite ended",
    ),
    "online-suite-verdicts": (
        "benchmarks.suite.verdicts",
        "what the diagnosis says of the suite's problems",
    ),
    "foresight": (
        "benchmarks.suite.compute_bound.foresight",
        "which early comparison of settings foretells the end of a run",
    ),
    "short": (
        "benchmarks.suite.compute_bound.benchmark",
        "how methods end on runs that have no compute to waste",
    ),
    "boil-tabular": (
        "benchmarks.curves.tabular",
        "regret against what was paid, on recorded learning curves",
    ),
    "boil-signal": (
        "benchmarks.curves.signal",
        "what early iterations say of the end, and whether it is noticed",
    ),
    "boil-rl": (
        "benchmarks.curves.live.boil_rl",
        "regret against what was paid, on trainings of reinforcement learning",
    ),
    "boil-cnn": (
        "benchmarks.curves.live.boil_cnn",
        "regret against what was paid, on trainings of a convolutional network",
    ),
    "boil-picture": (
        "benchmarks.curves.picture",
        "regrets, learnt weights and one decision, drawn",
    ),
    "prob-min": (
        "benchmarks.subsets.accuracy",
        "which of several Gaussian values is the smallest, beside millions of draws",
    ),
    "svm-grid": (
        "benchmarks.subsets.svm_grid",
        "support vector machines on MNIST, a grid by six fractions of the data",
    ),
    "fabolas-time": (
        "benchmarks.subsets.timing",
        "seconds of an iteration of SubsetOptimizer",
    ),
    "svm-live": (
        "benchmarks.subsets.live.svm_live",
        "support vector machines on parts of MNIST, trained live",
    ),
    "fabolas-networks": (
        "benchmarks.subsets.live.fabolas_networks",
        "networks on parts of CIFAR-10, trained live",
    ),
    "fabolas": (
        "benchmarks.subsets.fabolas",
        "regret at the target against what was paid, by evaluations at other fidelities",
    ),
    "fabolas-picture": (
        "benchmarks.subsets.picture",
        "what parts of the data say, and what is believed of them",
    ),
    "lcdb": (
        "benchmarks.learners.curves",
        "the learning curves of PyPI's lcdb, distilled for the two benchmarks that follow",
    ),
    "learners": (
        "benchmarks.learners.learners",
        "the best of 20 learners on all of the data, by trainings on parts of it",
    ),
    "subset-noise": (
        "benchmarks.learners.noise",
        "whether noise falls with the size of the training set, in 4,000 learning curves",
    ),
    "entropy-search": (
        "benchmarks.information.benchmark",
        "how soon the optimum is known, by acquisition functions",
    ),
    "entropy-search-time": (
        "benchmarks.information.timing",
        "milliseconds of an iteration of those, on the same evaluations",
    ),
    "meta": ("benchmarks.meta.benchmark", "regret after earlier tasks, and which they harm"),
    "meta-synthetic": (
        "benchmarks.meta.synthetic.benchmark",
        "regret, weights and share where the gaps of the tasks are known",
    ),
    "meta-record": (
        "benchmarks.meta.live.benchmark",
        "families of related tasks, evaluated once for policies to be played on",
    ),
    "meta-speed": (
        "benchmarks.speed.transfer",
        "time, memory and choices of TransferOptimizer, beside DIRECT",
    ),
    "stn": (
        "benchmarks.training.schedule.benchmark",
        "when to tune a self-tuning network on CIFAR-10",
    ),
    "stn-time": (
        "benchmarks.training.schedule.timing",
        "milliseconds of a step of a self-tuning network beside the plain one",
    ),
    "simclr": (
        "benchmarks.training.simclr.benchmark",
        "augmentation tuned within one contrastive training on CIFAR-10",
    ),
    "simclr-readout": (
        "benchmarks.training.simclr.readouts",
        "which brief readout ranks representations as the final one does",
    ),
    "simclr-time": (
        "benchmarks.training.simclr.timing",
        "pictures per second, where the time goes, and what changing probabilities costs",
    ),
    "curve-speed": (
        "benchmarks.speed.trainings",
        "seconds of a stretch of training, ask and tell",
    ),
    "ddp": (
        "benchmarks.distributed.benchmark",
        "decisions that the ranks of a distributed run share, and what sharing them costs",
    ),
    "kills": (
        "benchmarks.endurance.kills",
        "a tuned run that is killed at random moments, and what the kills left",
    ),
    "trainers": (
        "benchmarks.endurance.trainers",
        "what a tuner takes of the time of a run in Lightning or Transformers",
    ),
    "populations": (
        "benchmarks.populations.benchmark",
        "members tuned together by one belief, beside Ray's PB2 at equal compute",
    ),
    "speed": ("benchmarks.speed.speed", "milliseconds of decisions, beside BoTorch's pieces"),
    "streaming": ("benchmarks.speed.streaming", "milliseconds of an update and of a round"),
    "horizon": ("benchmarks.speed.horizon", "cost of a round early and late in a very long run"),
    "decisions": (
        "benchmarks.decisions",
        "a hash of the decisions of fixed runs, to compare two versions of the code",
    ),
    "report": ("benchmarks.tables.report", "stored results beside the printed ones, with verdicts"),
}
"""Name on the command line to module and line of help.

A module has ``main(arguments)`` and is imported only when asked for.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Dispatch to a benchmark; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(listing())
        return 0
    name, *rest = words
    if name not in REGISTRY:
        print(f"Expected one of {', '.join(REGISTRY)}; received {name!r}.", file=sys.stderr)
        return 2
    module_name, _ = REGISTRY[name]
    import_module(module_name).main(rest)
    return 0


def listing() -> str:
    """Return the benchmarks and what they are."""
    width = max(map(len, REGISTRY))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in REGISTRY.items()]
    usage = "usage: python -m benchmarks <name> [options]   (<name> --help lists the options)"
    return "\n".join([usage, "", *lines])


if __name__ == "__main__":
    sys.exit(main())
