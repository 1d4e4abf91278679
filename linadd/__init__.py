"""Additive classifiers f(x) = f_1(x_1) + ... + f_D(x_D) + b on data larger than memory, with a certificate.

The tree, in the order in which data flow; a module imports from those above it only:

    errors.py           LinaddError, DataError (file, row, column), ConfigError, FormatError, the warnings
    choices.py          the names a user chooses among
    bounds.py           bounds as text, rounded up
    named_columns.py    a frame's columns in the order of a model
    _jit.py  _simd.py   compiled functions, their cache, vectors of 16 lanes; alone import numba
    atomic.py           files that appear whole or not at all
    interrupt.py        Ctrl-C: once stops, twice aborts
    chunks.py           consecutive rows, read ahead
    census.py           one pass over the data: ranges, moments, sample (row_sample.py), labels, faults
    census_cache.py     censuses kept from run to run
    losses.py           hinge, squared hinge, logistic: value, derivative, dual step
    labels.py           counts of the labels, and those that nothing can be trained on
    metrics.py          accuracy, recall, AUC, log loss, reliability of a stream
    penalty.py          the difference penalty as running sums
    onnx_graph.py       nodes and constants of an ONNX file
    figures.py          figures written whole; alone imports matplotlib
    ranges.py           values outside the training range: policies, counts
    sources/            one file a format; rows by position; convert.py writes HDF5 that trains fast
    encoders/           one file a basis: value of a feature -> phi
    solvers/            one file an algorithm; blocks out of core; the certificate (stopping.py)
    model_file.py       named arrays and a JSON header in one file
    shapes.py           a feature's curve, density and importance
    calibration.py      probabilities from decisions: sigmoid, isotonic
    options.py          every training option, declared once
    model.py            the trained classifier: scores, labels, curves, its file
    sparse_kernel/      five kernel classifiers for small data
    validation.py       rows that training does not see: watched after every pass; early stopping
    embedding.py        the read before training: scale, centre, labels and costs, rows that fit in memory
    advice.py           the warnings of training, with their remedies
    train.py            wires a source, an encoder, a loss and a solver into a model
    doctor/             what is wrong with a data set, how much it matters, and what to do about it
    estimate.py         memory and time of a training run, foreseen from a probe
    stream.py           stochastic gradient over rows as they come
    search/             C, folds and settings of a grid trained on shared reads; the best of them
    liblinear_model.py  model files of LIBLINEAR
    models.py           load_model: class key of a file -> class
    estimator_input.py  rows as scikit-learn's users hand them over -> a source
    score.py            decisions from a model file with NumPy alone
    estimators.py       AdditiveClassifier, by the conventions of scikit-learn
    transformers.py     BSplineEmbedding, FourierEmbedding, HermiteEmbedding: rows -> codes
    export/             one file a target
    plots.py            pictures of a model
    report/             one HTML page of a model, with its script
    cli/                the command line, a verb a file

Docstrings cite by these keys:

    Armijo1966          Armijo, "Minimization of functions having Lipschitz continuous first partial derivatives",
                        Pacific Journal of Mathematics 16
    Chan1983            Chan, Golub and LeVeque, "Algorithms for computing the sample variance", Am. Statistician 37
    deBoor1978          de Boor, "A Practical Guide to Splines", Springer
    Eilers1996          Eilers and Marx, "Flexible smoothing with B-splines and penalties", Statistical Science 11
    Guo2017             Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML
    Hsieh2008           Hsieh, Chang, Lin, Keerthi and Sundararajan, "A dual coordinate descent method for large-scale
                        linear SVM", ICML
    Jaggi2014           Jaggi et al., "Communication-efficient distributed dual coordinate ascent", NIPS
    Kott2001            Kott, "The delete-a-group jackknife", Journal of Official Statistics 17
    Lin2007             Lin, Lin and Weng, "A note on Platt's probabilistic outputs for support vector machines",
                        Machine Learning 68
    Lin2015             Lin, Mairal and Harchaoui, "A universal catalyst for first-order optimization", NIPS
    Ma2015              Ma et al., "Adding vs. averaging in distributed primal-dual optimization", ICML
    Maji2011            Maji, "Linearized additive classifiers", arXiv 1110.0879
    Maji2012            Maji, "Linearized smooth additive classifiers", ECCV workshops
    Platt1999           Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
                        likelihood methods", Advances in Large Margin Classifiers
    Rockafellar1976     Rockafellar, "Monotone operators and the proximal point algorithm", SIAM Journal on Control and
                        Optimization 14
    ShalevShwartz2007   Shalev-Shwartz, Singer and Srebro, "Pegasos: primal estimated sub-gradient solver for SVM", ICML
    ShalevShwartz2013   Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods for regularized loss
                        minimization", Journal of Machine Learning Research 14
    Shamir2013          Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization: convergence results
                        and optimal averaging schemes", ICML
    Yu2011              Yu, Huang and Lin, "Dual coordinate descent methods for logistic regression and maximum entropy
                        models", Machine Learning 85
    Zadrozny2002        Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
                        estimates", KDD
"""

from importlib import import_module

# Public name -> its module, imported when the name is first asked for. `linadd.train` is the module of that name.
PUBLIC = {
    "AdditiveClassifier": "linadd.estimators",
    "AdditiveModel": "linadd.model",
    "BSplineEmbedding": "linadd.transformers",
    "ConfigError": "linadd.errors",
    "ConvergenceWarning": "linadd.errors",
    "DataError": "linadd.errors",
    "DataWarning": "linadd.errors",
    "FormatError": "linadd.errors",
    "FourierEmbedding": "linadd.transformers",
    "HermiteEmbedding": "linadd.transformers",
    "LinaddError": "linadd.errors",
    "Options": "linadd.options",
    "Progress": "linadd.train",
    "Source": "linadd.sources",
    "convert": "linadd.sources.convert",
    "export_model": "linadd.export",
    "load_liblinear_model": "linadd.liblinear_model",
    "load_model": "linadd.models",
    "open_source": "linadd.sources",
    "plot_curves": "linadd.plots",
    "take_census": "linadd.census",
}

__all__ = list(PUBLIC)


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version("linadd")
    if name not in PUBLIC:
        raise AttributeError(f"module 'linadd' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(PUBLIC[name]), name)
    return value


def __dir__():
    return sorted({*globals(), *PUBLIC})
