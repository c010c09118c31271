"""The table of harmed tasks: what its columns count, and that OptunaHub's page has it."""

from benchmarks.harness.record import rows_of
from benchmarks.meta.harm import main, table
from tests.integrations.launching import ROOT


def rows(family, twist, method, *at):
    return [
        {"family": family, "twist": twist, "method": method, "seed": seed, "at 10": regrets}
        for seed, regrets in enumerate(at)
    ]


def test_harm_is_counted_by_target_beside_the_common_seeds_of_gp_ucb():
    played = [
        *rows("some", "", "GP-UCB", [0.1, 0.1, 0.1], [0.1, 0.2, 0.3], [9.0, 9.0, 9.0]),
        *rows("some", "", "TransferOptimizer", [0.3, 0.1, 0.0], [0.09, 0.22, 0.1]),
        *rows("some", "", "RM-GP-UCB", [0.104, 0.1, 0.4]),
        *rows("none to compare with", "", "TransferOptimizer", [0.5]),
    ]
    (row,) = table(played).splitlines()[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # By 0.2 and -0.01 on the first target, by 0 and 0.02 on the second: each may be chance.
    assert cells == ["some", "as recorded", "2", "1", "2 of 3", "0", "0.095", "1 of 3", "0.300"]


def test_the_page_of_the_hub_has_the_table_of_the_stored_rows(capsys):
    main([])
    shown = capsys.readouterr().out.strip()
    assert shown == table(rows_of("meta"))
    assert len(shown.splitlines()) > 10
    page = ROOT / "hub" / "package" / "samplers" / "robust_transfer" / "README.md"
    assert shown in page.read_text(encoding="utf-8"), (
        "paste what python -m benchmarks meta-harm prints"
    )
