"""The Import Vector Machine for two classes as its formulas read: what the fast version must equal."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax


def objective(K, selected, a, y, lam):
    f = K[:, selected] @ a
    return -y @ f + np.logaddexp(0, f).sum() + lam / 2 * a @ K[np.ix_(selected, selected)] @ a


def newton_step(K, selected, a, y, lam):
    """One exact Newton step from coefficients a, without halving."""
    K1, K2 = K[:, selected], K[np.ix_(selected, selected)]
    p = expit(K1 @ a)
    gradient = K1.T @ (p - y) + lam * K2 @ a
    G = K1.T @ (K1 * (p * (1 - p))[:, None]) + lam * K2
    return a - np.linalg.solve(G, gradient)


def converged(K, selected, a, y, lam):
    for _ in range(50):
        a = newton_step(K, selected, a, y, lam)
    return a


def first_step_scores(K, y, lam, selected=(), a=()):
    """H after one Newton step on S + {l}, started from (a, 0), for every l outside S (NaN inside)."""
    scores = np.full(len(K), np.nan)
    for new in set(range(len(K))) - set(selected):
        enlarged = [*selected, new]
        scores[new] = objective(K, enlarged, newton_step(K, enlarged, np.append(a, 0.0), y, lam), y, lam)
    return scores


def greedy(K, y, lam, refit="newton", algorithm="revised", n_steps=None):
    """Order of inclusion and H after every addition."""
    selected, a, history = [], np.zeros(0), []
    for _ in range(n_steps or len(K)):
        if algorithm == "revised":
            best = int(np.nanargmin(first_step_scores(K, y, lam, selected, a)))
        else:
            outside = [new for new in range(len(K)) if new not in selected]
            fits = [objective(K, [*selected, new], converged(K, [*selected, new], np.append(a, 0.0), y, lam), y, lam)
                    for new in outside]
            best = outside[int(np.argmin(fits))]
        selected.append(best)
        a = newton_step(K, selected, np.append(a, 0.0), y, lam)
        if refit == "newton" or algorithm == "basic":
            a = converged(K, selected, a, y, lam)
        history.append(objective(K, selected, a, y, lam))
    return selected, np.array(history)


def full_softmax(K, y_index, n_classes, lam, reference=False):
    """H of full kernel logistic regression by L-BFGS; with `reference` the last class has f = 0.

    In u = L' A of K = L L' the penalty is lam/2 |u|^2, which L-BFGS likes better than A' K A.
    """
    n, n_outputs = len(K), n_classes - reference
    onehot = np.eye(n_classes)[y_index]
    L = np.linalg.cholesky(K + 1e-12 * np.eye(n))

    def value(flat):
        u = flat.reshape(n, n_outputs)
        log_p = log_softmax(np.hstack([L @ u, np.zeros((n, n_classes - n_outputs))]), axis=1)
        gradient = L.T @ (np.exp(log_p) - onehot)[:, :n_outputs] + lam * u
        return -np.sum(onehot * log_p) + lam / 2 * np.sum(u * u), gradient.ravel()

    return minimize(value, np.zeros(n * n_outputs), jac=True, method="L-BFGS-B",
                    options={"maxiter": 5000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-9}).fun
