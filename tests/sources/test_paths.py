"""Names of files: groups, patterns, their order, and what is said when there is none."""

import os

import pytest

from linadd.errors import ConfigError
from linadd.sources.paths import are_paths, find_files, missing_file
from tests.checks.check_source import refusal


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with parts of a data set."""
    monkeypatch.chdir(tmp_path)
    for name in ("part-1.h5", "part-2.h5", "part-10.h5", "odd[1].h5", "odd1.h5", "sub/deep/part-3.h5"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_paths_are_told_from_arrays(tmp_path):
    assert are_paths("a.h5") and are_paths(tmp_path) and are_paths(["a.h5", tmp_path]) and are_paths(("a",))
    assert not are_paths([]) and not are_paths([[1, 2], [3, 4]]) and not are_paths(["a", 1]) and not are_paths(None)


def test_patterns_give_files_in_the_order_of_their_numbers(folder):
    assert find_files("part-*.h5") == [("part-1.h5", None), ("part-2.h5", None), ("part-10.h5", None)]
    assert find_files("part-*.h5::a/b") == [(f"part-{i}.h5", "a/b") for i in (1, 2, 10)]
    assert find_files("part-?.h5", "g") == [("part-1.h5", "g"), ("part-2.h5", "g")]
    assert find_files("**/part-[13].h5") == [("part-1.h5", None), (os.path.join("sub", "deep", "part-3.h5"), None)]


def test_lists_keep_their_order_and_may_hold_patterns(folder):
    names = [folder / "part-10.h5", "part-1.h5::g", "odd?.h5"]
    assert find_files(names) == [(str(folder / "part-10.h5"), None), ("part-1.h5", "g"), ("odd1.h5", None)]


def test_a_name_of_a_file_is_no_pattern(folder):
    assert find_files("odd[1].h5") == [("odd[1].h5", None)]


def test_a_file_counts_once_in_each_group(folder):
    os.symlink("part-2.h5", "part-3.h5")
    message = "part-3.h5: is given twice, the first time as 'part-2.h5'. Give each file once."
    assert refusal(find_files, "part-?.h5") == message
    message = "./part-1.h5: is given twice, the first time as 'part-1.h5'. Give each file once."
    assert refusal(find_files, ["part-1.h5", "./part-1.h5"]) == message
    assert len(find_files(["part-1.h5::train", "part-1.h5::test"])) == 2
    message = "part-1.h5::g: the group is given twice, as 'g' and 'h'. Give it once."
    assert refusal(find_files, "part-1.h5::g", "h", error=ConfigError) == message


def test_what_is_said_of_no_file(folder):
    there = "The folder has 'part-2.h5', 'part-1.h5', 'part-10.h5' and 3 more."
    assert missing_file("parts-*.h5") == f"matches no file. {there}"
    assert refusal(find_files, "parts-*.h5::g") == f"parts-*.h5::g: matches no file. {there}"
    assert missing_file("sub/*/*.csv") == "matches no file. The folder has 'deep'."
    assert missing_file("no/*.csv") == "the folder 'no' does not exist."
    assert refusal(find_files, ["part-1.h5", "prt-2.h5"]) == (
        "prt-2.h5: does not exist. The folder has 'part-2.h5', 'part-1.h5', 'part-10.h5' and 3 more."
    )
