"""One setting of a search: its outputs, what their training found, and their figures on the rows held out.

Outputs = values of C x held-out folds x machines (one for two classes, else one a class), in that order, so that the
16 lanes of a group have like values of C and are frozen together. Output (C, k) is trained on all rows but those of
fold k.
"""

from dataclasses import replace

import numpy as np

from linadd.choices import METRICS
from linadd.encoders.exact import decide
from linadd.metrics import Metrics, log_probabilities
from linadd.search.choice import grid_values, setting_key
from linadd.train import make_problem


class Path:
    """The values of C and folds of one setting.

    Parameters
    ----------
    source : Source
        The rows.
    options : Options
        The setting.
    choice : Choice
        Values of C, and folds.
    embedded : Embedded
        The rows embedded; their folds are set.
    n_held : int64 array, shape (n_folds,)
        Rows of each fold.
    with_auc : bool
        Whether to keep scores for an AUC.

    Attributes
    ----------
    problem : Problem
        Of the first step of the Choice; without the rows once it is trained.
    results : list of SolverResult
        Of each step that was begun, with a column for each (C, fold, machine).
    """

    def __init__(self, source, options, choice, embedded, n_held, with_auc):
        self.options, self.choice, self.n_held, self.with_auc = options, choice, n_held, with_auc
        self.mean_code, self.n_classes = embedded.density.mean_code, len(embedded.census.classes)
        problem, n_costs, n_folds = make_problem(source, embedded, options), len(choice.steps[0]), choice.n_folds
        self.n_machines, self.results = problem.n_outputs, []
        self.problem = replace(
            problem,
            positive=np.tile(problem.positive, n_costs * n_folds),
            cost=self.cost_of(choice.steps[0]),
            held_out=np.tile(np.repeat(np.arange(n_folds, dtype=np.int16), self.n_machines), n_costs),
        )

    def cost_of(self, costs):
        """C of each output of a step, float64 (n_outputs,)."""
        return np.repeat(np.array(costs, np.float64), self.choice.n_folds * self.n_machines)

    def finish(self, results):
        """Take the results, and let the rows go."""
        self.results, self.problem = results, replace(self.problem, positions=None)
        self.coef = self.by_cost(np.concatenate([np.moveaxis(result.coef, 2, 0) for result in results]))
        self.intercept = self.by_cost(np.concatenate([result.intercept for result in results]))
        self.gaps = self.by_cost(np.concatenate([result.certificate.gaps for result in results]))
        n_each = len(self.choice.steps[0])
        self.passes = [result.passes for result in results for _ in range(n_each)]
        self.is_interrupted = results[-1].interrupted or len(results) < len(self.choice.steps)
        worst = self.gaps.max(axis=(1, 2))
        self.is_cut = (worst > self.options.tol) & [result.interrupted for result in results for _ in range(n_each)]

    def by_cost(self, values):
        """An array over the outputs as (n_costs, n_folds, n_machines, ...)."""
        return np.reshape(values, (-1, self.choice.n_folds, self.n_machines, *values.shape[1:]))

    def keyed(self):
        """(index, setting_key) of each value of C that was trained."""
        costs = self.choice.costs[: len(self.gaps)]
        return [(c, setting_key(replace(self.options, C=float(C)))) for c, C in enumerate(costs)]

    def deviations(self):
        """Standard errors of curves, float32 (n_features, n_basis, n_machines), by setting_key; none for one fold."""
        if self.choice.n_folds == 1:
            return {}
        is_local, by_fold = self.problem.encoder.is_local, np.moveaxis(self.coef, 2, 4)  # the machines last
        return {key: fold_deviation(by_fold[c], self.mean_code, is_local) for c, key in self.keyed()}

    def begin_scores(self):
        """Empty figures for each value of C and fold."""
        folds = range(self.choice.n_folds)
        self.metrics = [[Metrics(self.n_classes, self.with_auc) for _ in folds] for _ in self.gaps]
        flat = (self.coef[:, k].reshape(-1, *self.coef.shape[3:]) for k in folds)
        self.columns = [np.moveaxis(each, 0, 2).copy() for each in flat]

    def score(self, chunk, X):
        """Add the held-out rows of a training chunk, whose values are X, to the figures."""
        problem, place = self.problem, slice(chunk.first_row, chunk.first_row + chunk.n_rows)
        has_probabilities = problem.loss.has_probabilities
        for k, columns in enumerate(self.columns):
            rows = np.flatnonzero(problem.folds[place] == k)
            targets = problem.targets[place][rows].astype(np.int64)
            weight = None if chunk.weight is None else chunk.weight[rows]
            decisions = decide(problem.encoder, X[rows], columns, self.intercept[:, k].ravel())
            for own, part in zip(self.metrics, np.split(decisions, len(self.metrics), axis=1), strict=True):
                own[k].update(targets, part, log_probabilities(part) if has_probabilities else None, weight)

    def records(self):
        """Records of the table, for each value of C; the scores are let go."""
        figures = [[each.figures() for each in own] for own in self.metrics]
        self.metrics = self.columns = None
        return [self.record(c, own) for c, own in enumerate(figures)]

    def record(self, c, figures):
        """The record of the c-th value of C from the figures of its folds."""
        folds = [
            {"fold": k + 1, "n_rows": int(self.n_held[k])}
            | {name: own[name] for name in METRICS}
            | {"gap": float(self.gaps[c, k].max())}
            for k, own in enumerate(figures)
        ]
        record = {"C": float(self.choice.costs[c])} | grid_values(self.options)
        for name in METRICS:
            values = [fold[name] for fold in folds]
            is_known = None not in values
            record[name] = float(np.mean(values)) if is_known else None
            has_deviation = is_known and len(values) > 1
            record[f"{name}_deviation"] = float(np.std(values, ddof=1)) if has_deviation else None
        return record | {"gap": float(self.gaps[c].max()), "passes": self.passes[c], "folds": folds}


def fold_deviation(coef, mean_code, is_local):
    """Standard errors of curves from the models of the folds, by the delete-a-group jackknife [Kott2001].

        sqrt((K - 1) / K  sum_k (v_k - mean of v)^2)

    Parameters
    ----------
    coef : float32 array, shape (n_folds, n_features, n_basis, n_outputs)
        Of the model that was trained without each fold.
    mean_code : array, shape (n_features, n_basis)
        Mean of phi over all rows.
    is_local : bool
        The basis sums to 1: the coefficients are first centred, so that they are those of centred curves.

    Returns
    -------
    float32 array, shape (n_features, n_basis, n_outputs)
    """
    coef = coef.astype(np.float64)
    if is_local:
        coef -= np.einsum("jk,fjko->fjo", mean_code.astype(np.float64), coef)[:, :, None]
    return (coef.std(axis=0) * np.sqrt(len(coef) - 1)).astype(np.float32)
