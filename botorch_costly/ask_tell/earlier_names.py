"""Names that optimizers had before: they work for one version, and warn."""

import warnings
from typing import Any


class EarlierNames:
    """Earlier names of the methods of an optimizer, which ``dir`` leaves out."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in vars(EarlierNames)]

    def adopt(self: Any, *args: Any, **options: Any) -> Any:
        """Call ``enqueue``."""
        warn_of("adopt", "enqueue")
        return self.enqueue(*args, **options)

    def withdraw(self: Any, suggestion: Any) -> None:
        """Call ``cancel``."""
        warn_of("withdraw", "cancel")
        self.cancel(suggestion)

    def best_seen(self: Any) -> Any:
        """Call ``best``."""
        warn_of("best_seen", "best")
        return self.best()

    def believed(self: Any, *args: Any, **options: Any) -> Any:
        """Call ``predict``."""
        warn_of("believed", "predict")
        return self.predict(*args, **options)

    @property
    def paid(self: Any) -> Any:
        """Return ``total_cost``."""
        warn_of("paid", "total_cost")
        return self.total_cost


def warn_of(earlier: str, name: str) -> None:
    """Warn of an earlier name, at the line that calls the method of that name."""
    message = f"`{earlier}` is called `{name}` now; the earlier name goes with the next version."
    warnings.warn(message, FutureWarning, stacklevel=3)
