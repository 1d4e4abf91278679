"""What the two sparse Gaussian process classifiers share: one latent function for two classes, else one a class."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linadd.errors import ConfigError
from linadd.sparse_kernel.base import KernelClassifier

__all__ = ["LatentGPClassifier"]


class LatentGPClassifier(KernelClassifier):
    """A classifier whose `models_` have `latent(rows)`: mean and variance of f, float64 (n_rows,) each."""

    def _check_slope(self):
        if not self.probit_slope > 0:
            raise ConfigError(f"probit_slope: {self.probit_slope} is not above 0. Give a positive number.")

    def _positive_classes(self):
        """For every latent function the index of the class that it is positive for."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _publish_each(self, **values):
        """Set fitted attributes, each from a list over the latent functions: its one value, or the list."""
        for name, each in values.items():
            setattr(self, name, each[0] if len(self.models_) == 1 else each)

    def predict_latent(self, X):
        """Mean and variance of f: float64 (n_rows,) each for two classes, else (n_rows, n_classes).

        Parameters
        ----------
        X : array-like (n_rows, n_features)
        """
        rows = self._scaled(X)
        check_is_fitted(self, "models_")
        latent = [model.latent(rows) for model in self.models_]
        if len(latent) == 1:
            return latent[0]
        return tuple(np.column_stack(part) for part in zip(*latent, strict=True))
