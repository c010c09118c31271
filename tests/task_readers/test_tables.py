"""Tables as earlier tasks."""

import json
import logging

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError

LINE = bc.SearchSpace({"x": bc.Real(0, 1)})

# -- tables ----------------------------------------------------------------------------------------

TABLE = """data, C,kernel,accuracy,note
iris,1,rbf,0.9,
wine,1e1,"a, b",0.8,late
iris, 0.5 ,"2",nan,
"""


@pytest.fixture
def table(tmp_path):
    def written(text, encoding="utf-8"):
        path = tmp_path / "svm.csv"
        path.write_text(text, encoding=encoding)
        return path

    return written


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_table_is_read_as_a_task_for_each_study(table, encoding, caplog):
    path = table(TABLE, encoding)
    iris, wine = bc.tasks_from_csv(path, "accuracy", task="data", names=["kernel", "C"])
    configs = [{"kernel": "rbf", "C": 1}, {"kernel": 2, "C": 0.5}]
    assert iris == bc.Task(configs, [0.9, None], name="iris")
    assert wine == bc.Task([{"kernel": "a, b", "C": 10.0}], [0.8], name="wine")
    assert [type(config["C"]) for config in iris.configs] == [int, float]
    assert caplog.records == []


def test_a_table_without_a_column_of_studies_is_one(table, caplog):
    caplog.set_level(logging.WARNING)
    path = table(TABLE)
    (whole,) = bc.tasks_from_csv(str(path), "accuracy")
    config = {"data": "wine", "C": 10.0, "kernel": "a, b", "note": "late"}
    assert whole == bc.Task([config], [0.8], name="svm")
    (record,) = caplog.records
    left_out = f"2 of 3 rows of {path} have an empty cell and are left out: 2 in 'note'"
    assert record.getMessage().startswith(left_out)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("3.0", 3.0),
        ("1e-3", 0.001),
        ("True", "True"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1_000", "1_000"),
        ("1e999", "1e999"),
        (" a b ", "a b"),
    ],
)
def test_cells_are_numbers_or_texts(table, cell, value):
    (task,) = bc.tasks_from_csv(table(f"x,y\n{cell},1\n"), "y")
    assert task.configs[0] == {"x": value}
    assert type(task.configs[0]["x"]) is type(value)


def test_rows_that_end_early_have_empty_cells(table, caplog):
    (task,) = bc.tasks_from_csv(table("y,x\n1,2\n3\n\n,4\n"), "y")
    assert task.values == (1.0,)
    assert "2 of 3 rows" in caplog.text  # an empty line is no row


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,y\n1,2\n", {"task": "study"}, r"column: Expected one of \['x', 'y'\]; .*'study'"),
        ("x,z\n1,2\n", {}, "column: .*Received 'y'"),
        ("x,y\n1,2\n", {"names": ["w"]}, "column: .*Received 'w'"),
        ("x,y\n1,2\n", {"names": "x"}, "names: Expected a list"),
        ("x,y\n1,2\n", {"names": []}, "names: Expected a column"),
        ("y\n2\n", {}, "names: Expected a column"),
        ("x,y\n1,2\n", {"task": "y"}, "columns: Expected one use"),
        ("x,y\n1,2\n", {"names": ["x", "y"]}, "columns: Expected one use"),
        ("x,x,y\n1,1,2\n", {}, "path: Expected distinct names"),
        ("x,y\n1,2\n3,4,5\n", {}, r"line 3: Expected 2 cells; Received \['5'\]"),
        ("x,y\n1,2\n3,bad\n", {}, "line 3, y: Expected a number .*; Received 'bad'"),
        ("x,y\n1,\n", {}, "path: Expected a row without an empty cell; .*1 rows"),
        ("x,y\n", {}, "path: Expected a row"),
        ("", {}, "path: Expected a file whose first row .*'an empty file'"),
    ],
)
def test_what_is_no_table(table, text, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bc.tasks_from_csv(table(text), "y", **options)
    with pytest.raises(FileNotFoundError):
        bc.tasks_from_csv("nowhere.csv", "y")


VERSIONS = bc.SearchSpace({"v": bc.Choice(["3.1", "3.9", "3.10"]), "x": bc.Real(0, 1)})


def test_a_number_does_not_stand_for_an_option_that_is_written_otherwise(table):
    """The kind: a cell is read as something else than its text says, and a row goes to another option."""
    path = table("v,x,y\n3.1,0.10,1\n3.10,1e-1,2\n3.9,.5,3\n3.90,0.5,4\n")
    (task,) = bc.tasks_from_csv(path, "y")
    assert task == bc.Task([dict(c) for c in task.configs], [1, 2, 3, 4], name="svm")
    for form in (task, bc.Task.from_dict(json.loads(json.dumps(task.to_dict())))):
        encoded = form.in_space(VERSIONS)
        versions = [VERSIONS.decode(point)["v"] for point in encoded.points]
        assert list(zip(versions, encoded.values.tolist(), strict=True)) == [
            ("3.1", 1.0),
            ("3.10", 2.0),
            ("3.9", 3.0),
        ]
        assert encoded.points[:, -1].tolist() == [0.1, 0.1, 0.5]
        assert encoded.outside == {"v": 1}  # 3.90 is no option


@pytest.mark.parametrize("cell", ["16.00", "16.5", "1e1"])
def test_a_number_is_no_text_that_no_program_writes_it_as(table, cell):
    (task,) = bc.tasks_from_csv(table(f"x,y\n{cell},1\n"), "y")
    with pytest.raises(InvalidConfigError, match="1 by 'x'"):
        task.in_space(bc.SearchSpace({"x": bc.Choice(["16", "10"])}))


@pytest.mark.parametrize(
    ("cell", "options", "option"),
    [
        ("007", ["7", "007"], "007"),
        ("7", ["7", "007"], "7"),
        ("1e-3", ["0.001", "1e-3"], "1e-3"),
        ("1.0", ["1", "1.0"], "1.0"),
        ("+1", [1, 2], 1),
        ("3.10", [3.1, 3.9], 3.1),
        ("-0.0", [0.0, 1.0], 0.0),
        ("True", [False, True], True),
        ("TRUE", [False, True], True),
        ("false", [True, False], False),
        ("true", [True, "true"], "true"),
        ("None", ["a", None], None),
        ('"64,64"', ["64,64", "64"], "64,64"),
        ("1_000", ["1000", "1_000"], "1_000"),
        ("9" * 310, ["a", "9" * 310], "9" * 310),
        ("1e999", ["inf", "1e999"], "1e999"),
        ("NA", ["NA", "a"], "NA"),
        ("1.0", [1, "1.0"], "1.0"),
        ("1", [True, "1"], "1"),
        ("1", ["a", 1.0, "1"], "1"),
        ("1000.0", [1000, "1000.0"], "1000.0"),
        ("1", ["1", 1], 1),
        ("1.0", [1, 2], 1),
        ("16.0", ["16", "32"], "16"),
        ("16.0", ["16", "16.0"], "16.0"),
        ("-16.0", ["-16", 16.0], "-16"),
    ],
)
def test_a_cell_is_the_option_that_it_is_written_as(table, cell, options, option):
    space = bc.SearchSpace({"x": bc.Choice(options)})
    (task,) = bc.tasks_from_csv(table(f"x,y\n{cell},1\n"), "y")
    assert space.decode(task.in_space(space).points[0])["x"] is option or option == cell.strip('"')
    assert space.decode(task.in_space(space).points[0])["x"] == option


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("x;y\n1;2\n", "utf-8"),
        ("x\ty\n1\t2\n", "utf-8"),
        ("x;y;\n1;2;\n", "utf-8-sig"),
        ("x,y\n1,2\n", "utf-16"),
        ("x\ty\r\n1\t2\r\n", "utf-16"),
        ("x,y,\n1,2,\n", "utf-8"),
        ("x,y\n1,2,,\n", "utf-8"),
        (",x,y\n0,1,2\n", "utf-8"),  # the index of a data frame
        ("x,y\r1,2\r", "utf-8"),
        ('"x","y"\n\n"1"," 2 "\n   \n', "utf-8"),
    ],
)
def test_files_as_programs_write_them(table, text, encoding, caplog):
    path = table("")
    path.write_bytes(text.encode(encoding))
    assert bc.tasks_from_csv(path, "y") == [bc.Task([{"x": 1}], [2.0], name="svm")]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x;y\n1;0,9\n", "svm.csv, line 2, y: Expected a number written as 1234.5 .*'0,9'"),
        (b'x,y\n1,"1,234"\n', "line 2, y: Expected a number .*'1,234'"),
        (b"x,y\n1,95%\n", "line 2, y: Expected a number .*'95%'"),
        (b"x,y\n1,1_000\n", "line 2, y: Expected a number .*'1_000'"),
        (b"x,y\n1,N/A\n", "line 2, y: Expected a number .* nan where .*'N/A'"),
        (b"x,y,note\n1,2,\n3,4,\n", "path: Expected a row .*2 in 'note'; names chooses"),
        (b"x,y\n1,2\n\xe9,3\n", "path: Expected text in UTF-8.* 0xe9 in line 3"),
        ("x,y\n1,2\n".encode("utf-16-le"), "path: Expected text in UTF-8.*null bytes"),
        (b'x,y\n"1,2\n3,4\n', "line 2: Expected cells whose quotation marks are closed"),
        (b'x,y\n"a"b,2\n', "line 2: Expected cells whose quotation marks are closed"),
        (b"x,y\n" + b"a" * 140_000 + b",2\n", "line 2: Expected cells .* of at most 131072"),
        (b"\xef\xbb\xbf\n \n", "path: Expected a file whose first row"),
        (b"x\ty\n1\t2\t3\n", r"line 2: Expected 2 cells; Received \['3'\]"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_what_is_expected(table, content, message):
    path = table("")
    path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match=message):
        bc.tasks_from_csv(path, "y")


@pytest.mark.parametrize("cell", ["0,1", "10%", "1.234,5", "NA", "one"])
def test_texts_that_are_no_numbers_are_named(table, cell):
    (task,) = bc.tasks_from_csv(table(f"x;y\n{cell};1\n"), "y")
    with pytest.raises(InvalidConfigError, match=f"1 by 'x', such as '{cell}'"):
        task.in_space(LINE)


@pytest.mark.parametrize("number", ["3", "3.0", "3e0", "+3", "03", "30e-1"])
def test_a_whole_number_is_an_integer_however_it_is_written(table, number):
    (task,) = bc.tasks_from_csv(table(f"x,y\n{number},1\n"), "y")
    assert task.in_space(bc.SearchSpace({"x": bc.Integer(1, 5)})).points.tolist() == [[0.5]]


def test_values_beyond_all_numbers_failed(table):
    (task,) = bc.tasks_from_csv(table(f"x,y\n1,{'9' * 310}\n2,-1e999\n3,-0\n"), "y")
    assert task.values == (None, None, 0.0)


@pytest.mark.parametrize("path", [3, None, ["a.csv"]])
def test_what_is_no_path(path):
    with pytest.raises(InvalidArgumentError, match="path: Expected the path of a file"):
        bc.tasks_from_csv(path, "y")


@pytest.mark.parametrize("texts", [[], [1], [{"x": 1}], "a", [{"x": "a"}] * 2])
def test_what_are_no_texts_of_a_task(texts):
    with pytest.raises((InvalidArgumentError, InvalidConfigError)):
        bc.Task([{"x": 1}], [1.0], texts=texts)
