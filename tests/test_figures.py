"""Figures: the suffixes that they are written under, and files that are whole or not there."""

import sys

import pytest

from linadd.errors import ConfigError, DataError
from linadd.figures import SUFFIXES, new_figure, save_figure

HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".PNG"])
def test_a_picture_of_its_suffix_and_nothing_else(suffix, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / f"f{suffix}"
    save_figure(new_figure(path, figsize=(1, 1)), path, dpi=20)
    assert path.read_bytes().startswith(HEADS[suffix.lower()])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["curves", "curves.txt", "rows.h5", ".png", "png"])
def test_another_suffix_is_refused(name, tmp_path):
    with pytest.raises(ConfigError) as caught:
        new_figure(tmp_path / name)
    assert str(caught.value) == (
        f"{tmp_path / name}: pictures are *.png, *.svg, *.pdf. Give the name one of these suffixes."
    )


def test_a_folder_that_is_missing_is_named(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "no" / "f.png"
    with pytest.raises(DataError, match=r"no/f\.png: the folder '.*/no' does not exist\. Create it first\.$"):
        save_figure(new_figure(path), path)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError) as caught:
        new_figure("f.png")
    assert str(caught.value) == "plots need matplotlib. Install it by pip install 'linadd[plot]'."
