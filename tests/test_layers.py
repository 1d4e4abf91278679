"""The import direction of the package, as a table; any edge that points up or sideways fails."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "linadd"

# A module may import from lower layers and from its own folder. Half a layer: what others of the same layer stand on.
LAYERS = {
    "bounds": 0,
    "choices": 0,
    "errors": 0,
    "_jit": 0,
    "_simd": 0.5,
    "atomic": 1,
    "figures": 1.5,
    "interrupt": 1,
    "chunks": 0.4,
    "census": 1,
    "census_cache": 1.5,
    "row_sample": 0.6,
    "labels": 0.5,
    "losses": 1,
    "metrics": 1,
    "onnx_graph": 1,
    "ranges": 1,
    "named_columns": 0.5,
    "penalty": 1,
    "sources": 2,
    "encoders": 2,
    "solvers": 3,
    "model_file": 3,
    "embedding": 3.5,
    "shapes": 3.5,
    "calibration": 3.5,
    "model": 4,
    "options": 4,
    "checkpoint": 4,
    "score": 4.5,
    "sparse_kernel": 4,
    "liblinear_model": 4.5,
    "models": 5,
    "validation": 4,
    "advice": 1,
    "train": 5,
    "doctor": 5.5,
    "estimate": 5.5,
    "search": 5.5,
    "stream": 5.5,
    "distributed": 5,
    "estimator_input": 5,
    "estimators": 6,
    "transformers": 6,
    "export": 6,
    "plots": 6,
    "report": 6.5,
    "cli": 7,
}
MAY_IMPORT_NUMBA = {"_jit", "_simd"}


def part_of(module):
    """The entry of LAYERS that a dotted module below linadd belongs to."""
    return module.split(".")[0]


def imported_modules(path):
    """(line, module) of every import of linadd or numba in a file, late ones included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            if node.module == "linadd":
                yield from ((node.lineno, f"linadd.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


MODULES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.stem not in ("__init__", "__main__"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    part = part_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert part in LAYERS, f"{part} is not in the table of layers: place it"
    for line, module in imported_modules(path):
        if module.split(".")[0] == "numba":
            assert part in MAY_IMPORT_NUMBA, f"{path}:{line}: only {MAY_IMPORT_NUMBA} import numba"
        if not module.startswith("linadd."):
            continue
        target = part_of(module.removeprefix("linadd."))
        assert target == part or LAYERS[target] < LAYERS[part], f"{path}:{line}: {part} imports {target}"
