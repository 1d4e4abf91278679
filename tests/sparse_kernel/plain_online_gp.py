"""The sparse online GP as sections 7.1 to 7.3 of the design page state it: a formula a line, no trick."""

import numpy as np
from scipy.stats import norm


def probit_derivatives(y, mean, variance, bias=0.1):
    """q and r of section 7.2 (c) at slope 1."""
    t = 1 + variance
    z = y * (mean + bias) / np.sqrt(t)
    q = y * np.exp(norm.logpdf(z) - norm.logcdf(z)) / np.sqrt(t)
    return q, -q * (q + (mean + bias) / t)


class PlainOnlineGP:
    """State of sections 7.1 to 7.3; `rows` are the indices of the basis vectors in order of arrival."""

    def __init__(self, kernel, X, y, max_basis, novelty_tol=1e-4, score="mean", derivatives=probit_derivatives):
        self.kernel, self.X, self.y = kernel, X, y
        self.max_basis, self.novelty_tol, self.score, self.derivatives = max_basis, novelty_tol, score, derivatives
        self.rows, self.alpha = [], np.zeros(0)
        self.C, self.Q, self.Kb = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))
        self.P = np.zeros((len(X), 0))
        self.precision, self.mean = np.zeros(len(X)), np.zeros(len(X))

    def process(self, i, is_frozen=False):
        """Section 7.2 for example i."""
        alpha, C = self.alpha, self.C
        if self.precision[i]:
            p = self.P[i]
            h = p + C @ self.Kb @ p
            v = 1 / (1 / self.precision[i] - p @ self.Kb @ h)
            alpha, C = alpha + h * v * (alpha @ self.Kb @ p - self.mean[i]), C + v * np.outer(h, h)
        x = self.X[i : i + 1]
        k, k_star = self.kernel(self.X[self.rows], x)[:, 0], self.kernel(x)[0, 0]
        m, sig2, ehat = alpha @ k, k_star + k @ C @ k, self.Q @ k
        gam = max(k_star - k @ ehat, 0)
        q, r = self.derivatives(self.y[i], m, sig2)
        self.mean[i], self.precision[i] = m - q / r, -1 / (1 / r + sig2)
        if i in self.rows:
            ehat, gam = np.eye(len(self.rows))[self.rows.index(i)], 0
        if i in self.rows or gam < self.novelty_tol * k_star or is_frozen:
            eta, s = 1 / (1 + gam * r), C @ k + ehat
            self.P[i], self.alpha, self.C = ehat, alpha + q * eta * s, C + r * eta * np.outer(s, s)
            return
        extended, s = np.append(ehat, -1), np.append(C @ k, 1)
        self.rows.append(i)
        self.Q = np.pad(self.Q, (0, 1)) + np.outer(extended, extended) / gam
        self.Kb = self.kernel(self.X[self.rows])
        self.P = np.pad(self.P, ((0, 0), (0, 1)))
        self.P[i] = np.eye(len(self.rows))[-1]
        self.alpha, self.C = np.append(alpha, 0) + q * s, np.pad(C, (0, 1)) + r * np.outer(s, s)
        if len(self.rows) > self.max_basis:
            self.remove(int(np.argmin(self.scores())))

    def scores(self):
        """Both scores of section 7.3, of every basis vector."""
        q, c = np.diag(self.Q), np.diag(self.C)
        eps = self.alpha**2 / (q + c)
        if self.score == "mean":
            return eps
        S = np.linalg.inv(np.eye(len(self.rows)) + self.C @ self.Kb) @ self.C
        return 0.5 * (eps - np.diag(S) / q + np.log1p(c / q))

    def remove(self, j):
        """Section 7.3 for basis vector j."""
        rest = np.delete(np.arange(len(self.rows)), j)
        Qj, qj, Cj, cj = self.Q[rest, j], self.Q[j, j], self.C[rest, j], self.C[j, j]
        self.alpha = self.alpha[rest] - self.alpha[j] / (cj + qj) * (Qj + Cj)
        self.C = (self.C[np.ix_(rest, rest)] + np.outer(Qj, Qj) / qj
                  - np.outer(Qj + Cj, Qj + Cj) / (qj + cj))
        self.Q = self.Q[np.ix_(rest, rest)] - np.outer(Qj, Qj) / qj
        self.P = self.P[:, rest] - np.outer(self.P[:, j], Qj) / qj
        self.Kb = self.Kb[np.ix_(rest, rest)]
        self.rows.pop(j)

    def closed_form(self):
        """alpha and C of section 7.1 from the sites."""
        T = self.P.T * self.precision
        system = np.eye(len(self.rows)) + T @ self.P @ self.Kb
        return np.linalg.solve(system, T @ self.mean), -np.linalg.solve(system, T @ self.P)
