"""Records and helpers of the tests of pictures."""

from botorch_costly.records import Decision


def decision(i):
    query = i % 3 == 0
    reason = f"a rival may be better (confidence 0.{i})" if query else "no rival is likely"
    config = {"lr": 10.0 ** -(i + 1), "policy": "strong" if i % 2 else "light", "flip": i > 2}
    return Decision(i, config, query=query, reason=reason)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]
