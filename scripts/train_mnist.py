"""Train an additive classifier on the 2,172 features of MNIST, out of core, and print its test error.

    python scripts/train_mnist.py --data SRC|PREPARED.h5 [--memory-limit 200MB] [--json]

SRC is what `data_prep/mnist.py` reads: the folder of the IDX files, or mnist.npz. With --json the object has `error`
(share of the test digits), `gap` (relative duality gap of the worst class), `converged`, `passes` and `seconds`
(training, the census included). Exit code 3: the gap stayed above --tol.

Squared hinge, one class against the rest, linear splines of 10 uniform bins, first differences penalised.
"""

import sys

from image_runs import accuracy, main

from linadd.sources import open_source
from linadd.train import train

DEFAULTS = {"loss": "squared_hinge", "C": 1.0, "tol": 1e-2}


def experiment(path, options):
    """Figures and text of one training run and its test."""
    model = train(open_source(path, group="train"), options)
    figures = {"error": 1 - accuracy(model, open_source(path, group="test"))}
    figures |= {name: model.summary[name] for name in ("gap", "converged", "passes", "seconds")}
    text = "test error {error:.2%}; relative gap {gap:.1e} after {passes} passes, {seconds:.1f} s"
    return figures, text.format(**figures)


if __name__ == "__main__":
    sys.exit(main(experiment, "mnist.py", __doc__, DEFAULTS))
