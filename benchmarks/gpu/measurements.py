"""The measurements that need a GPU, in the order of their worth: the table of ``benchmarks/GPU.md``.

Each has its command, its limit in minutes, and the same program in tiny sizes for a device without
hardware. First comes what shows that decisions run there at all and how fast, then what takes minutes,
then trainings of hours, which continue where they were cut off.
"""

from typing import NamedTuple


class Measurement(NamedTuple):
    """A row of the table.

    ``command`` and ``tiny`` are what follows ``python -m``; ``tiny`` is empty where a program has no tiny
    size on that device.
    """

    name: str
    what: str
    command: str
    minutes: float
    expected: str
    tiny: str = ""


_TINY = "--observations 12 --dim 2 --repeats 1 --problems 2 --rounds 3 --batches 1 2 --grid-dims 1"
_TINY += " --grid-observations 8 16 --largest-for-botorch 8"
_SMALL = "--trials 2 --horizon 8 --points 30"

MEASUREMENTS = (
    Measurement(
        "waits-tests",
        "decisions on the device and their waits; no waiting inside a climb",
        "pytest -q --device cuda tests/tuners/online/test_waits.py tests/simulation/test_waits.py "
        "tests/optim/test_lbfgs.py",
        3,
        "all pass: the device is waited for where it is checked which problems are left, and in no "
        "other "
        "iteration",
        "pytest -q -p tests.far --device far tests/simulation/test_waits.py tests/optim/test_lbfgs.py",
    ),
    Measurement(
        "decision",
        "one decision on the device",
        "benchmarks speed --device cuda --parts decision waiting --problems 40",
        3,
        "acquisition values and verdicts as on the CPU",
        f"benchmarks speed --device far --parts decision waiting {_TINY}",
    ),
    Measurement(
        "offline",
        "an ask of `CurveOptimizer`, `SubsetOptimizer` and `TransferOptimizer`",
        "benchmarks offline --device cuda",
        4,
        "the same asks as on the CPU up to ties; the time beside the CPU's is open",
        "benchmarks offline --device far --evaluations 4 --asks 1",
    ),
    Measurement(
        "batch",
        "many beliefs at once, beside `python -m benchmarks speed --parts batch --threads 2`",
        "benchmarks speed --device cuda --parts batch profile",
        4,
        "a batch of 1,024 makes at least 20 times the decisions a second of the best batch on two "
        "CPU cores",
        f"benchmarks speed --device far --parts batch profile {_TINY}",
    ),
    Measurement(
        "table-a2",
        "Table A2 on the device",
        "benchmarks table-a2 --device cuda --published --processes 1",
        3,
        "same regrets as on the CPU up to the random stream, in under 30 s",
        f"benchmarks table-a2 --device far --processes 1 --forgetting 0.03 --match UCB {_SMALL}",
    ),
    Measurement(
        "waits",
        "waits for the device, of which torch warns each",
        "benchmarks speed --device cuda --parts waits",
        2,
        "as on the stand-in without hardware: a decision waits at most 5 times (2 with a query, 1 "
        "without, "
        "1 priced), a step of the simulator never",
        "benchmarks speed --device far --parts waits",
    ),
    Measurement(
        "simclr-time",
        "a contrastive step and its parts",
        "benchmarks simclr-time --networks resnet18 --device cuda",
        2,
        "changing all eight probabilities costs nothing (at most 1.05 times, no new graph); the "
        "tuner has "
        "less than 0.5 % of the time; more than 20,000 pictures a second",
        "benchmarks simclr-time --smoke --device far --repeats 1",
    ),
    Measurement(
        "stn-time",
        "steps of self-tuning VGG16",
        "benchmarks stn-time --networks vgg16 --device cuda",
        2,
        "a self-tuning training step takes at most 1.6 times the plain one",
        "benchmarks stn-time --networks small --device far --repeats 1",
    ),
    Measurement(
        "priced",
        "the priced query on the device",
        "benchmarks priced --device cuda",
        5,
        "totals as on the CPU up to the random stream; many times faster",
        f"benchmarks priced --device far --forgetting 0.03 {_SMALL}",
    ),
    Measurement(
        "grid",
        "decisions by size",
        "benchmarks speed --device cuda --parts grid",
        4,
        "a decision with many observations in many dimensions takes less than on a CPU core",
        f"benchmarks speed --device far --parts grid {_TINY}",
    ),
    Measurement(
        "simclr-time-compiled",
        "the contrastive step, compiled",
        "benchmarks simclr-time --networks resnet18 --device cuda --compile",
        4,
        "no new graph when probabilities change",
    ),
    Measurement(
        "tests",
        "tests on the device",
        "pytest -q -m 'not slow' --device cuda",
        12,
        "most pass; a test that draws on the CPU with the device's generator is to be mended",
        "pytest -q -m 'not slow' -p tests.far --device far tests/numerics/test_growth.py tests/query",
    ),
    Measurement(
        "simclr",
        "augmentation of SimCLR tuned online, ResNet-18 on all of CIFAR-10, 60 epochs of batches of "
        "512",
        "benchmarks simclr --published --seeds 3 --processes 1 --methods 'fixed 0.5' expert 'full "
        "feedback' "
        "'confidence 0.8' priced 'as it comes'",
        36,
        "tuned above fixed 0.5 by more than its standard error, confidence 0.8 within one of full "
        "feedback at "
        "60 % of its queries. An epoch is 45,000 pictures in two views, 3e14 operations forward and "
        "backward: "
        "2 to 4 s at 75 to 150 Tflop/s, so 2 to 4 minutes a run and 36 to 72 for these 18. "
        "`--epochs 100` if "
        "an epoch takes less than 2 s; all methods without `--methods`",
        "benchmarks simclr --smoke --device far --seeds 1 --processes 1 --methods 'fixed 0.5' priced",
    ),
    Measurement(
        "stn",
        "self-tuning VGG16 on CIFAR-10, 150 epochs",
        "benchmarks stn --published --seeds 1 --processes 1 --methods 'train only' 'train and tune' "
        "'priced, net' 'confidence 0.8'",
        60,
        "the order of Table A3: confidence 0.7 and 0.8 with a validation loss below the static "
        "grid's, at 1.1 "
        "and 1.2 times the time of training. On one thread of a CPU a step of 128 pictures took 7.2 "
        "s and a "
        "tuning step 3.8 s, so a dense run would take six days; a GPU that is 300 to 900 times as "
        "fast needs "
        "10 to 30 minutes for it, and 4 to 10 hours for all 23 methods, without `--methods`. "
        "`--precision fp32` for the other precision",
        "benchmarks stn --smoke --device far --seeds 1 --processes 1 --methods 'train only' "
        "'confidence 0.8'",
    ),
    Measurement(
        "fabolas-networks",
        "networks on parts of CIFAR-10, in the spaces of the Fabolas supplement",
        "benchmarks fabolas-networks --programs cnn residual --seeds 1 --processes 1",
        60,
        "`SubsetOptimizer` has an error after 30 s that random search and LogEI on all pictures "
        "need 120 s "
        "for; a training on all pictures is to take 10 to 40 s",
    ),
    Measurement(
        "boil-cnn",
        "networks on all of CIFAR-10, 150 epochs",
        "benchmarks boil-cnn --published --programs pictures --pool 48 --processes 1",
        120,
        "`CurveOptimizer` ahead of random search and halving, as with 2,000 pictures; an epoch took "
        "5.5 s on "
        "one thread of a CPU",
        "benchmarks boil-cnn --programs pictures --pool 2 --seeds 1 --processes 1 --policies random",
    ),
    Measurement(
        "meta-record",
        "networks across sets of pictures, and a Siamese network across alphabets, of the paper's size",
        "benchmarks meta-record --families 'images, full' 'omniglot, full' --configs 64 --processes 1",
        120,
        "values as in the small settings, higher; a training of one epoch of `omniglot, full` took "
        "58 s on "
        "one thread of a CPU",
        "benchmarks meta-record --families diabetes --quick --processes 1",
    ),
    Measurement(
        "tests-single",
        "tests in single precision on the device",
        "pytest -q -m 'not slow' --device cuda --dtype float32",
        12,
        "all pass",
        "pytest -q -p tests.far --device far --dtype float32 tests/numerics/test_growth.py",
    ),
    Measurement(
        "two-gpus",
        "two GPUs for one network",
        "torch.distributed.run --nproc-per-node 2 -m benchmarks simclr --published --seeds 1 "
        "--methods 'fixed 0.5'",
        10,
        "the same top-1 within a standard error, in 0.5 to 0.7 of the time; two gloo processes have "
        "the loss "
        "and gradient of one",
    ),
)
