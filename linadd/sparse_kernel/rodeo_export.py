"""The tables of a Rodeo density classifier, and its bandwidth search in plain NumPy, for code without linadd.

The link is "density"; one record a class:

    columns (n_used,)            features that are compared, from 0; the others count as uniform on [0, 1]
    points (m, n_used)           scaled training rows of the class
    bandwidths (n_steps,)        those a feature can have, falling: c0 / log log max(m, 16) * beta^k >= min_bandwidth
    threshold                    sqrt(2 log(m c_m)) of the significance test, c_m = max(log m, 1) or threshold_constant
    log_prior                    log of the prior of the class
    beta, c0, min_bandwidth, threshold_constant    the constants that gave `bandwidths` and `threshold`

A score is log density + log prior; a row too far from every class for float64 has the log priors. `log_density` is the
search: every feature starts at the first bandwidth and moves on to the next while its derivative is significant.
"""

import numpy as np

from linadd.sparse_kernel.rodeo_bandwidths import bandwidth_steps, search_threshold

__all__ = ["density_scores", "log_density", "rodeo_outputs"]


def rodeo_outputs(model):
    """One record a class, and the link.

    Parameters
    ----------
    model : RodeoDensityClassifier
        Fitted.

    Returns
    -------
    list of dict, str
    """
    rule = {"beta": float(model.beta), "c0": float(model.c0_), "min_bandwidth": float(model.min_bandwidth)}
    constant = model.threshold_constant
    outputs = []
    for points, columns, prior in zip(model.X_by_class_, model.columns_in_use(), model.class_prior_, strict=True):
        outputs.append({
            "columns": columns, "points": points[:, columns], "bandwidths": bandwidth_steps(len(points), **rule),
            "threshold": search_threshold(len(points), constant), "log_prior": float(np.log(prior)), **rule,
            "threshold_constant": constant if constant == "log" else float(constant)})
    return outputs, "density"


def density_scores(outputs, rows):
    """Log density plus log prior of every class.

    Parameters
    ----------
    outputs : list of dict
        The records above, arrays or lists.
    rows : float64 array (n_rows, n_features)
        Scaled.

    Returns
    -------
    float64 array (n_rows, n_classes)
    """
    scores = np.empty((len(rows), len(outputs)))
    for c, output in enumerate(outputs):
        points, bandwidths = np.asarray(output["points"]), np.asarray(output["bandwidths"])
        queries = rows[:, np.asarray(output["columns"])]
        scores[:, c] = [log_density(query, points, bandwidths, output["threshold"]) for query in queries]
    scores[np.isneginf(scores).all(axis=1)] = 0.0
    return scores + [output["log_prior"] for output in outputs]


def log_density(query, points, bandwidths, threshold):
    """Natural logarithm of the density of a class at one row, with the bandwidths that the search finds for it.

    Parameters
    ----------
    query : float64 array (n_features,)
    points : float64 array (m, n_features)
    bandwidths : float64 array (n_steps,)
    threshold : float

    Returns
    -------
    float
        -inf where every point is too far for float64.
    """
    n_points, n_features = points.shape
    squares = (query - points) ** 2
    n_shrinks = np.zeros(n_features, dtype=int)
    active = np.ones(n_features, dtype=bool)
    log_weight = -0.5 * squares.sum(axis=1) / bandwidths[0] ** 2
    for step in range(len(bandwidths) - 1):
        if log_weight.max() == -np.inf or n_points < 2:
            break
        precision = 1.0 / bandwidths[step] ** 2
        z = (squares[:, active] * precision - 1.0) * np.exp(log_weight - log_weight.max())[:, None]
        mean = z.mean(axis=0)
        squared_error = np.maximum((z**2).sum(axis=0) - n_points * mean**2, 0.0) / (n_points - 1.0) / n_points
        active[active] = mean**2 > threshold**2 * squared_error
        if not active.any():
            break
        n_shrinks[active] = step + 1
        log_weight -= 0.5 * (1.0 / bandwidths[step + 1] ** 2 - precision) * squares[:, active].sum(axis=1)
    top = log_weight.max()
    if top == -np.inf:
        return -np.inf
    log_sum = top + np.log(np.exp(log_weight - top).sum() / n_points)
    return log_sum - 0.5 * n_features * np.log(2.0 * np.pi) - np.log(bandwidths[n_shrinks]).sum()
