"""Normal equations of kernel least squares, accumulated over blocks of rows, and their solution for many ridges.

For basis functions phi(x)_l = exp(-|x - z_l|^2 / (2 sigma^2)) and indicators of the classes that a basis serves, over n
rows: H = (1/n) sum_i phi(x_i) phi(x_i)', h_c = (1/n) sum_{i of class c} phi(x_i), theta_c = (H + lambda I)^-1 h_c
[sugiyama2010]. Sums are kept for each fold, so that the equations without a fold are a difference, and the equations
without the centres of a fold a block of it: no row is visited twice for cross-validation.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, eigh

from linadd.row_sample import hash_rows
from linadd.sparse_kernel.kernel_base import squared_distances
from linadd.sparse_kernel.linear_algebra import jittered_cholesky

__all__ = ["Basis", "Block", "NormalEquations", "choose_bases", "cut_blocks", "design", "ridge_path", "ridge_solve"]

# Rows x basis functions of one block: 16 MB of float64 for the design and as much for the distances.
BLOCK_VALUES = 2 << 20


@dataclass(frozen=True)
class Block:
    """Consecutive training rows.

    Attributes
    ----------
    X : float64 array (n_rows, n_features), scaled
    y_index, fold : int64 arrays (n_rows,)
        Class of each row, and the fold in which it is held out.
    first_row : int
        Index of the first row, from 0.
    """

    X: np.ndarray
    y_index: np.ndarray
    fold: np.ndarray
    first_row: int


@dataclass(frozen=True)
class Basis:
    """Centres, and the classes whose posteriors are expanded in them.

    Attributes
    ----------
    centers : float64 array (n_basis, n_features), scaled
    fold : int64 array (n_basis,)
        Fold of the training row that the centre is.
    classes : int64 array (n_served,)
    """

    centers: np.ndarray
    fold: np.ndarray
    classes: np.ndarray


def cut_blocks(block, n_basis):
    """The block in pieces whose design of `n_basis` columns takes at most BLOCK_VALUES values.

    Parameters
    ----------
    block : Block
    n_basis : int
    """
    step = max(1, BLOCK_VALUES // max(1, n_basis))
    for start in range(0, len(block.X), step):
        rows = slice(start, start + step)
        yield Block(block.X[rows], block.y_index[rows], block.fold[rows], block.first_row + start)


def choose_bases(blocks, n_classes, shared, max_centers, seed):
    """Take the centres from one reading of the training rows.

    Parameters
    ----------
    blocks : iterable of Block
    n_classes : int
    shared : bool
        One basis for all classes, of rows of every class, instead of a basis a class of its own rows.
    max_centers : int or None
        The rows with the smallest hashes of their index, at most so many a basis; None takes all.
    seed : int
        Seed of the hash.

    Returns
    -------
    list of Basis
    """
    kept = [[] for _ in range(1 if shared else n_classes)]
    for block in blocks:
        row = np.arange(block.first_row, block.first_row + len(block.X))
        order = hash_rows(row, seed) if max_centers is not None else row
        for k in range(len(kept)):
            mine = slice(None) if shared else block.y_index == k
            kept[k].append((order[mine], block.X[mine], block.fold[mine]))
            if max_centers is not None:
                kept[k] = [smallest(kept[k], max_centers)]
    bases = []
    for k, parts in enumerate(kept):
        _, centers, fold = smallest(parts, max_centers)
        bases.append(Basis(centers, fold, np.arange(n_classes) if shared else np.array([k])))
    return bases


def smallest(parts, count):
    """Columns (order, X, fold) of the rows with the `count` smallest values of `order`, sorted by it; None is all."""
    order, X, fold = (np.concatenate(column) for column in zip(*parts, strict=True))
    best = np.argsort(order, kind="stable")[:count]
    return order[best], X[best], fold[best]


def design(distances, sigma):
    """exp(-distances / (2 sigma^2)), in a new array.

    Parameters
    ----------
    distances : float64 array
        Squared.
    sigma : float
    """
    values = distances * (-0.5 / sigma**2)
    return np.exp(values, out=values)


def block_distances(X, basis):
    """Squared distances of rows to the centres of a basis, float64 (n_rows, n_basis)."""
    return squared_distances(X, np.einsum("ij,ij->i", X, X), basis.centers)


class NormalEquations:
    """Sums of phi phi' and of phi by class, for each width, basis and fold.

    Parameters
    ----------
    bases : list of Basis
    sigmas : sequence of float
        Widths.
    n_folds : int
        1 puts all rows into one sum.

    Attributes
    ----------
    gram : list of lists of float64 arrays (n_folds, n_basis, n_basis), by width and basis
    target : list of lists of float64 arrays (n_folds, n_basis, n_served)
    count : float64 array (n_folds,)
        Rows of each fold.
    """

    def __init__(self, bases, sigmas, n_folds):
        self.bases, self.sigmas, self.n_folds = bases, sigmas, n_folds
        sizes = [(len(basis.centers), len(basis.classes)) for basis in bases]
        self.gram = [[np.zeros((n_folds, b, b)) for b, _ in sizes] for _ in sigmas]
        self.target = [[np.zeros((n_folds, b, served)) for b, served in sizes] for _ in sigmas]
        self.count = np.zeros(n_folds)

    def add(self, block):
        """Add the rows of a block."""
        for piece in cut_blocks(block, max(len(basis.centers) for basis in self.bases)):
            fold_of = piece.fold if self.n_folds > 1 else np.zeros(len(piece.X), dtype=np.int64)
            count = np.bincount(fold_of, minlength=self.n_folds)
            self.count += count
            order, ends = np.argsort(fold_of, kind="stable"), np.cumsum(count)
            for k, basis in enumerate(self.bases):
                indicator = (piece.y_index[order, None] == basis.classes).astype(float)
                distances = block_distances(piece.X[order], basis)
                for s, sigma in enumerate(self.sigmas):
                    phi = design(distances, sigma)
                    for fold in range(self.n_folds):
                        part = phi[ends[fold] - count[fold] : ends[fold]]
                        self.gram[s][k][fold] += part.T @ part
                        self.target[s][k][fold] += part.T @ indicator[ends[fold] - count[fold] : ends[fold]]

    def of_all_rows(self, s, k):
        """H and h over all rows, in new arrays.

        Parameters
        ----------
        s, k : int
            Positions of the width and of the basis.

        Returns
        -------
        H, h : float64 arrays (n_basis, n_basis), (n_basis, n_served)
        """
        n_rows = self.count.sum()
        return self.gram[s][k].sum(axis=0) / n_rows, self.target[s][k].sum(axis=0) / n_rows

    def without_fold(self, s, k, fold):
        """H and h over the rows of the other folds, for the centres of the other folds.

        Parameters
        ----------
        s, k, fold : int
            Positions of the width and of the basis; the fold left out.

        Returns
        -------
        inside : int array (n_inside,)
            Indices of those centres.
        H, h : float64 arrays (n_inside, n_inside), (n_inside, n_served)
        """
        inside = np.flatnonzero(self.bases[k].fold != fold)
        n_rows = self.count.sum() - self.count[fold]
        gram = (self.gram[s][k].sum(axis=0) - self.gram[s][k][fold])[np.ix_(inside, inside)]
        target = (self.target[s][k].sum(axis=0) - self.target[s][k][fold])[inside]
        return inside, gram / n_rows, target / n_rows


def ridge_path(gram, target, ridges):
    """(gram + ridge I)^-1 target for every ridge from one eigendecomposition; `gram` is overwritten.

    Parameters
    ----------
    gram : float64 array (n_basis, n_basis), positive semi-definite
    target : float64 array (n_basis, n_served)
    ridges : float64 array (n_ridges,), above 0

    Returns
    -------
    float64 array (n_basis, n_ridges, n_served)
    """
    if not len(gram):
        return np.zeros((0, len(ridges), target.shape[1]))
    values, vectors = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
    shrunk = (vectors.T @ target)[:, None, :] / (np.maximum(values, 0.0)[:, None, None] + ridges[:, None])
    return np.tensordot(vectors, shrunk, axes=1)


def ridge_solve(gram, target, ridge):
    """(gram + ridge I)^-1 target by Cholesky; `gram` is overwritten.

    Parameters
    ----------
    gram : float64 array (n_basis, n_basis), positive semi-definite
    target : float64 array (n_basis, n_served)
    ridge : float, above 0

    Raises
    ------
    scipy.linalg.LinAlgError
        If gram + ridge I is singular in float64 even with the jitter of `jittered_cholesky`.
    """
    np.einsum("ii->i", gram)[:] += ridge
    return cho_solve((jittered_cholesky(gram), True), target, check_finite=False)
