"""Small real data sets, and how each run draws its own training, validation and test parts."""

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import torch
from torch import Generator, Tensor

from botorch_costly.errors import CostlyError

POOL = {"mnist": 8_000, "cifar10": 10_000}  # pictures that runs draw from, the first ones


class MissingDataError(CostlyError, FileNotFoundError):
    """Data that cannot be made here are not where they were said to be."""


class Part(NamedTuple):
    """Inputs, ``n x channels x side x side`` in [0, 1] or ``n x columns``, and classes, ``n``."""

    inputs: Tensor
    targets: Tensor


def digits() -> Part:
    """Return all 1,797 pictures of scikit-learn's digits, 1 x 8 x 8."""
    data = _scikit_learn("load_digits")
    pictures = torch.from_numpy(data.images).to(torch.float32) / 16
    return Part(pictures[:, None], torch.from_numpy(data.target).long())


def breast_cancer() -> Part:
    """Return scikit-learn's breast cancer table: 569 rows, 30 columns, benign or not."""
    data = _scikit_learn("load_breast_cancer")
    return Part(torch.from_numpy(data.data).float(), torch.from_numpy(data.target).long())


@cache
def pima() -> Part:
    """Return the Pima diabetes table: 768 rows, 8 columns, ill or not."""
    with _file("pima-indians-diabetes.csv").open(newline="", encoding="utf-8") as file:
        table = torch.tensor([[float(value) for value in row] for row in csv.reader(file)])
    return Part(table[:, :-1], table[:, -1].long())


def mnist() -> Part:
    """Return the first 8,000 training pictures of MNIST, 1 x 28 x 28."""
    return _mnist(POOL["mnist"])


def whole_mnist() -> Part:
    """Return all 60,000 training pictures of MNIST."""
    return _mnist(None)


@cache
def _mnist(many: int | None) -> Part:
    pool = arrays_of("mnist.npz", ("x_train", "y_train"))
    pictures, labels = pool["x_train"][:many], pool["y_train"][:many]
    return Part(torch.from_numpy(pictures)[:, None].float() / 255, torch.from_numpy(labels).long())


def cifar10() -> Part:
    """Return the first 10,000 training pictures of CIFAR-10, 3 x 32 x 32, every class a tenth."""
    return _cifar10(POOL["cifar10"])


def whole_cifar10() -> Part:
    """Return all 50,000 training pictures of CIFAR-10."""
    return _cifar10(None)


def cifar10_test() -> Part:
    """Return all 10,000 test pictures of CIFAR-10."""
    return _cifar10(None, of_test=True)


@cache
def _cifar10(many: int | None, *, of_test: bool = False) -> Part:
    import numpy as np
    from PIL import Image

    file = arrays_of("cifar10_jpeg93.npz", ("header", "blob", "offsets", "labels", "is_train"))
    head, blob, offsets = file["header"].tobytes(), file["blob"], file["offsets"]
    rows = (file["is_train"] != of_test).nonzero()[0][:many]

    def picture(row: int) -> Any:
        jpeg = head + blob[offsets[row] : offsets[row + 1]].tobytes() + b"\xff\xd9"
        return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))

    pictures = torch.from_numpy(np.stack([picture(row) for row in rows]))
    targets = torch.from_numpy(file["labels"][rows]).long()
    return Part(pictures.permute(0, 3, 1, 2).float() / 255, targets)


def available(problems: Mapping[str, Callable[[], Any]], names: Sequence[str]) -> list[str]:
    """Return the names of problems whose data are here, and print the others."""
    found = []
    for name in names:
        try:
            problems[name]().data()
            found.append(name)
        except MissingDataError as missing:
            print(f"{name} is left out. {missing}")
    return found


def of_classes(data: Part, classes: range) -> Part:
    """Return what belongs to some classes, which are counted from 0 again."""
    mine = (data.targets >= classes.start) & (data.targets < classes.stop)
    return Part(data.inputs[mine], data.targets[mine] - classes.start)


def split(targets: Tensor, amounts: Mapping[str, float], generator: Generator) -> dict[str, Tensor]:
    """Draw the indices of the parts, every class by itself; the other rows are for the test.

    ``amounts`` are, for each part but the test, rows of a class: a number, or a share below 1.
    """
    parts: dict[str, list[Tensor]] = {name: [] for name in (*amounts, "test")}
    for label in range(int(targets.max()) + 1):
        (members,) = torch.where(targets == label)
        members = members[torch.randperm(len(members), generator=generator)]
        sizes = [round(a * len(members)) if a < 1 else int(a) for a in amounts.values()]
        sizes.append(len(members) - sum(sizes))
        for part, chosen in zip(parts.values(), members.split(sizes), strict=True):
            part.append(chosen)
    return {name: torch.cat(part) for name, part in parts.items()}


@cache
def _scikit_learn(name: str) -> Any:
    from sklearn import datasets  # an extra of the package, needed here alone

    return getattr(datasets, name)()


def arrays_of(name: str, wanted: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return arrays of a file of the data folder, all if none is named.

    Raises:
        MissingDataError: If the folder of the data is not named, the file is not there, or it does not
            hold the arrays.
    """
    import numpy as np

    path = _file(name)
    try:
        with np.load(path) as file:
            found = list(file)
            if set(wanted) <= set(found):
                return {array: file[array] for array in wanted or found}
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise MissingDataError(name, "a file of NumPy arrays", str(path)) from error
    raise MissingDataError(name, f"a file with the arrays {list(wanted)}", found)


def _file(name: str) -> Path:
    """Return where a file of the data folder lies.

    Raises:
        MissingDataError: If the folder of the data is not named, or the file is not there.
    """
    folder = os.environ.get("BOTORCH_COSTLY_DATA")
    if folder is None or not (path := Path(folder) / name).exists():
        raise MissingDataError("BOTORCH_COSTLY_DATA", f"a folder that holds {name}", folder)
    return path
