"""Run a benchmark by name: ``python -m benchmarks <name> [options]``; without a name, list them."""

import sys
from collections.abc import Sequence
from pkgutil import resolve_name

REGISTRY: dict[str, tuple[str, str]] = {
    "demo": ("demo.demo", "a network tunes its own augmentation, and pays for its queries"),
    "table-a2": ("tables.table_a2", "regret and queries of CE-GP-UCB and its rivals"),
    "table-a1": ("bandits.table_a1", "regret and queries of bandits on arms whose rewards drift"),
    "table-a2-loop": ("tables.table_a2_loop", "the same rounds by a loop over BoTorch models"),
    "single-precision": ("tables.single_precision", "decisions that are equal in single precision"),
    "figure-1": ("tables.figure_1", "regret against queries, with EI and PI"),
    "figure-a3": ("tables.figure_a3", "belief, queries and skips in one run"),
    "regret-bounds": ("tables.regret_bounds", "regret and loss beside the bounds of the paper"),
    "priced": ("priced.frontier", "the value of a query against its price, and confidence"),
    "priced-effective-horizon": (
        "priced.frontier:effective_horizon",
        "how long the gain of a query counts",
    ),
    "priced-budget": ("priced.frontier:budget", "queries spent of a budget, and regret"),
    "priced-arms": ("priced.arms", "both rules among three arms"),
    "priced-continuous": ("priced.continuous", "both rules in 4 and 8 dimensions"),
    "priced-misspecified": ("priced.misspecified", "both rules on wrong beliefs"),
    "priced-picture": ("priced.picture", "the value of a query at each point, in one picture"),
    "priced-time": ("priced.timing", "milliseconds of a decision under either rule"),
    "online-suite": ("suite.benchmark", "how far tuning gets on small real problems"),
    "online-suite-picture": ("suite.benchmark:picture", "where each run of the suite ended"),
    "online-suite-verdicts": ("suite.verdicts", "what the diagnosis says of the suite's problems"),
    "foresight": ("suite.compute_bound.foresight", "which early comparison foretells the end"),
    "short": ("suite.compute_bound.benchmark", "methods on runs that have no compute to waste"),
    "short-constants": (
        "suite.compute_bound.constants",
        "what each constant of the twins is worth there",
    ),
    "short-lengths": ("suite.compute_bound.lengths", "the same sessions by the length of a run"),
    "boil-tabular": ("curves.tabular", "regret against cost, on recorded learning curves"),
    "pruners": ("curves.pruners", "Optuna's pruners and ours, on recorded learning curves"),
    "boil-signal": ("curves.signal", "what early iterations say of the end, and who notices"),
    "boil-condition": ("curves.condition", "points of curves that join the data, and conditions"),
    "boil-rl": (
        "curves.live.benchmark:reinforcement",
        "regret against cost, in reinforcement learning",
    ),
    "boil-cnn": (
        "curves.live.benchmark:network",
        "regret against cost, of a convolutional network",
    ),
    "boil-decay": (
        "curves.live.benchmark:decayed",
        "regret against cost, where the rate falls to 0 and epochs are chosen",
    ),
    "curves-earlier": (
        "curves.earlier",
        "a search over trainings after earlier studies, which may mislead",
    ),
    "boil-figures": ("curves.published", "the paper's figures of curves and rivals, drawn"),
    "boil-picture": ("curves.picture", "regrets, learnt weights and one decision, drawn"),
    "prob-min": ("subsets.accuracy", "which of several Gaussian values is the smallest"),
    "svm-grid": ("subsets.svm_grid", "a grid of support vector machines by six fractions of MNIST"),
    "fabolas-time": ("subsets.timing", "seconds of an iteration of SubsetOptimizer"),
    "svm-live": (
        "subsets.live.benchmark:machines",
        "support vector machines on parts of MNIST, live",
    ),
    "fabolas-networks": ("subsets.live.benchmark:networks", "networks on parts of CIFAR-10, live"),
    "fabolas": ("subsets.fabolas", "regret at the target against cost, by other fidelities"),
    "cold-belief": ("subsets.cold", "how near the belief of a new process is to the posterior"),
    "fabolas-picture": ("subsets.picture", "what parts of the data say, drawn"),
    "lcdb": ("learners.curves", "the learning curves of PyPI's lcdb, distilled for the next two"),
    "learners": ("learners.learners", "the best of 20 learners, by trainings on parts of the data"),
    "subset-noise": ("learners.noise", "whether noise falls with the size of the training set"),
    "entropy-search": ("information.benchmark", "how soon acquisition functions know the optimum"),
    "entropy-search-time": (
        "information.benchmark:timing",
        "milliseconds of an iteration of these",
    ),
    "meta": ("meta.benchmark", "regret after earlier tasks, and which they harm"),
    "meta-harm": ("meta.harm", "which targets earlier tasks harm, as a table of Markdown"),
    "algoperf": ("meta.algoperf", "time to a target after workloads that mislead"),
    "advice": ("meta.advice", "regret after proposals, good or hostile"),
    "meta-synthetic": ("meta.synthetic.benchmark", "the same where gaps of tasks are known"),
    "meta-weights": ("meta.weights", "what similar tasks weigh under rules that weight tasks"),
    "meta-many": ("meta.many", "regret after ever more tasks of the cart and its pole"),
    "meta-record": ("meta.live.pool", "families of related tasks, evaluated once"),
    "meta-speed": ("speed.transfer", "time, memory and choices of TransferOptimizer"),
    "stn": ("training.schedule.benchmark", "when to tune a self-tuning network on CIFAR-10"),
    "stn-time": ("training.schedule.timing", "milliseconds of a step of a self-tuning network"),
    "simclr": ("training.simclr.benchmark", "augmentation tuned within one contrastive training"),
    "simclr-readout": ("training.simclr.readouts", "which brief readout foretells the final one"),
    "simclr-time": ("training.simclr.timing", "where the time of a contrastive step goes"),
    "curve-speed": ("speed.trainings", "seconds of a segment of training, ask and tell"),
    "ddp": ("distributed.benchmark", "decisions that ranks share, and what sharing them costs"),
    "kills": ("endurance.kills", "a tuned run that is killed at random moments"),
    "trainers": ("endurance.trainers", "the share of a tuner in the time of a trainer"),
    "validation-live": (
        "validation.live.benchmark",
        "when to validate, on how much, and when to stop, on trainings",
    ),
    "populations": ("populations.benchmark", "members tuned by one belief, beside Ray's PB2"),
    "validation": ("validation.benchmark", "when validation pays, on recorded trainings"),
    "speed": ("speed.speed", "milliseconds of decisions, beside BoTorch's pieces"),
    "streaming": ("speed.streaming", "milliseconds of an update and of a round"),
    "gpu": ("gpu.run", "all measurements that need a GPU, in the order of their worth"),
    "offline": ("gpu.offline", "seconds of an ask of the offline optimizers on a device"),
    "imports": ("speed.imports", "seconds of an import of the package, beside BoTorch's"),
    "horizon": ("speed.horizon", "cost of a round early and late in a very long run"),
    "decisions": ("decisions", "a hash of the decisions of fixed runs, to compare two versions"),
    "report": ("tables.report", "stored results beside the printed ones, with verdicts"),
    "quotes": ("quotes.table", "the numbers of the README and the docs, from the stored rows"),
}
"""Name on the command line to a module with ``main(arguments)``, or ``module:function``, and its help.

A module is imported only when its benchmark is run.
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
    module, _, function = REGISTRY[name][0].partition(":")
    resolve_name(f"benchmarks.{module}:{function or 'main'}")(rest)
    return 0


def listing() -> str:
    """Return the benchmarks and what they are."""
    width = max(map(len, REGISTRY))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in REGISTRY.items()]
    usage = "usage: python -m benchmarks <name> [options]   (<name> --help lists the options)"
    return "\n".join([usage, "", *lines])


if __name__ == "__main__":
    sys.exit(main())
