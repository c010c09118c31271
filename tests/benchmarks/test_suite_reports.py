"""The suite in a picture, and what the diagnosis says of its problems."""

from dataclasses import replace
from functools import partial

from benchmarks.harness.record import read, write_results
from benchmarks.suite import benchmark, verdicts
from benchmarks.suite.problems import digits_augmentation


def rows_of(problem, **accuracies):
    return [
        {"problem": problem, "method": method.replace("_", " "), "seed": seed, "test_accuracy": a}
        for method, found in accuracies.items()
        for seed, a in enumerate(found)
    ]


def test_each_problem_has_a_panel_and_ruined_runs_are_counted_at_its_edge():
    rows = rows_of("digits_arms", default=[0.88, 0.9], tuned=[0.95, 0.96], random_schedule=[0.93])
    rows += rows_of("pima", default=[0.75, 0.76], tuned=[0.76, 0.1], full_feedback=[0.2, 0.3])
    figure = benchmark.draw(rows)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == ["digits arms", "pima"]
    assert [label.get_text() for label in shown[1].texts] == ["2", "1"]  # from below
    dots = {tuple(line.get_xdata()) for line in shown[0].lines if line.get_marker() == "o"}
    assert {(88.0, 90.0), (95.0, 96.0), (93.0,)} <= dots


def test_a_picture_is_drawn_of_what_is_stored(tmp_path, capsys):
    rows = rows_of("digits_arms", default=[0.88, 0.9], tuned=[0.95, 0.96])
    write_results("online-suite", rows, [0, 1], directory=tmp_path)
    benchmark.picture(["--results", str(tmp_path)])
    assert (tmp_path / "online-suite.png").stat().st_size > 1000
    assert "online-suite.png" in capsys.readouterr().out


def test_what_is_said_on_the_way_is_stored_and_judged_by_a_run_without_tuning(
    tmp_path, monkeypatch, capsys
):
    small = partial(replace, digits_augmentation(), horizon=40, steps=1)
    monkeypatch.setitem(verdicts.PROBLEMS, "digits_augmentation", small)
    few = ["--problems", "digits_augmentation", "--seeds", "1", "--processes", "1"]
    verdicts.main([*few, "--results", str(tmp_path)])
    rows = [line["row"] for line in read(verdicts.NAME, tmp_path)]
    assert [row["round"] for row in rows] == 2 * [10, 20, 30, 36, 40]
    assert [row["tuner"] for row in rows] == 5 * ["OnlineTuner"] + 5 * ["TwinTuner"]
    assert [row["queries"] for row in rows[:3]] == [5, 10, 15]
    assert rows[0]["pays"] is rows[0]["paid"] is None  # too early
    assert rows[0]["signal"] is None
    assert rows[4]["paid"] in (True, False, None)
    assert rows[4]["test ahead"] != 0.0
    assert "right after round" in capsys.readouterr().out


def answer(paid, test, validation, accuracy=0.1):
    ahead = {"test ahead": test, "validation ahead": validation, "accuracy ahead": accuracy}
    return {"problem": "p", "start": "bad", "tuner": "t", "round": 50, "paid": paid, **ahead}


def test_an_answer_is_right_if_the_run_says_so_or_is_in_between():
    better, level = (1.0, 1.0), (0.05, -1.0)
    between = [(1.0, 0.0), (1.0, 1.0, 0.0)]
    assert verdicts.is_right(answer(True, *better))
    assert not verdicts.is_right(answer(False, *better))
    assert not verdicts.is_right(answer(True, *level))
    assert verdicts.is_right(answer(False, *level))
    assert verdicts.is_right(answer(None, *better)) is None
    assert all(verdicts.is_right(answer(paid, *b)) for paid in (True, False) for b in between)
    rows = [
        answer(True, *better),
        answer(True, *level),
        answer(False, *between[0]),
        answer(None, *level),
    ]
    counted = verdicts.text(rows)
    assert "2 of 3" in counted
    assert "1, 2" in counted


def test_bad_starts_are_slow_or_strong_and_some_problems_have_none():
    starts = {name: verdicts.STARTS["bad"](make()) for name, make in verdicts.PROBLEMS.items()}
    assert starts["digits_arms"] is None
    assert starts["digits_strengths"]["rotation"] == 60.0
    assert starts["pima"]["learning_rate"] == 1e-4
    assert starts["digits_optimization"]["momentum"] == 0.5
