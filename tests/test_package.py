"""The public names, what they load, and the bibliography."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linadd

ROOT = Path(linadd.__file__).parent
CITATION = re.compile(r"\b(?:de)?[A-Z][A-Za-z]+(?:19|20)\d\d\b")


def test_there_are_at_most_25_public_names():
    assert len(linadd.__all__) <= 25
    assert set(linadd.__all__) <= set(dir(linadd))


@pytest.mark.parametrize("name", linadd.__all__)
def test_a_public_name_is_there_and_is_documented(name):
    assert getattr(linadd, name).__doc__


def test_no_public_name_hides_a_module():
    assert not set(linadd.__all__) & {module.name for module in pkgutil.iter_modules(linadd.__path__)}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError) as caught:
        linadd.AdditiveForest  # noqa: B018
    assert str(caught.value) == "module 'linadd' has no attribute 'AdditiveForest'"


def test_the_version_is_that_of_the_project():
    project = (ROOT.parent / "pyproject.toml").read_text()
    assert f'version = "{linadd.__version__}"' in project


@pytest.mark.parametrize("module", ["linadd", "linadd.cli"])
def test_what_is_imported_first_loads_nothing_heavy(module):
    heavy = {"numpy", "numba", "scipy", "dask", "h5py", "sklearn", "matplotlib", "pandas"}
    code = f"import sys, {module}; print(*sorted({heavy} & {{*sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"


def test_every_citation_is_in_the_bibliography():
    keys = {line.split()[0] for line in linadd.__doc__.splitlines() if CITATION.match(line.strip())}
    cited = {key for path in ROOT.rglob("*.py") for key in CITATION.findall(path.read_text("utf-8"))}
    assert cited == keys


def test_the_map_of_the_tree_names_every_module():
    modules = {f"{path.stem}.py" if path.is_file() else f"{path.name}/" for path in ROOT.iterdir()}
    names = set(re.findall(r"[_a-z]+(?:\.py|/)", linadd.__doc__))
    assert modules - {"__init__.py", "__main__.py", "__pycache__/"} <= names
