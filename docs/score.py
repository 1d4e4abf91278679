"""Scores from a JSON export of linadd: python score.py model.json < rows.json"""

import json
import sys

import numpy as np


def basis(m, n_bins, n_basis, u):  # values of phi at coordinates u, (n, n_basis)
    if m["encoder"] == "bspline":
        k = np.minimum(u.astype(int), n_bins - 1)
        phi = (k[:, None] == np.arange(n_basis)) * 1.0
        for r in range(1, m["degree"] + 1):  # the degree grows by one (Cox and de Boor)
            left = np.roll(phi, 1, axis=1)
            phi = ((u[:, None] - np.arange(n_basis) + r) * left + (np.arange(n_basis) + 1 - u[:, None]) * phi) / r
        return phi
    if m["encoder"] == "fourier":
        angle = np.pi * u[:, None] * (np.arange(n_basis) // 2 + 1)
        return np.where(np.arange(n_basis) % 2, np.cos(angle), np.sin(angle)) * m["weights"]
    return np.polynomial.hermite_e.hermevander(u, n_basis)[:, 1:] * m["weights"]  # identity: one term, u


def coordinate(f, x):
    if "edges" not in f:
        return (x - f["origin"]) * f["inverse"]
    edges = np.array(f["edges"])
    k = np.searchsorted(edges, x, side="right") - 1
    width = np.append(np.diff(edges), 1)[k]
    return np.where((k > 0) & (edges[k - 1] == x), k - 0.5, k + (x - edges[k]) / width)  # or a bin of one value


def scores(m, X):
    total = np.tile(m["intercept"], (len(X), 1))
    for f, x in zip(m["features"], np.asarray(X, float).T, strict=True):
        inside = x if f["lower"] is None else np.clip(x, f["lower"], f["upper"])
        if not np.isfinite(x).all() or (f.get("is_strict") and (x != inside).any()):
            raise ValueError("a value is not finite, or outside the range")
        total += basis(m, f.get("n_bins"), len(f["coef"]), coordinate(f, inside)) @ f["coef"]
        if "lower_slope" in f:
            total += (x - inside)[:, None] * np.where((x < inside)[:, None], f["lower_slope"], f["upper_slope"])
    return total


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(json.dumps(scores(json.load(file), json.load(sys.stdin)).tolist()))
