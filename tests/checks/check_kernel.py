"""Laws that every kernel obeys, for rows X and Z that are valid for it."""

import numpy as np

from linadd.sparse_kernel.kernels import kernel_from_description, make_kernel


def check_gram(kernel, X, Z):
    """Symmetric, positive semi-definite, with the diagonal of `diag`, and the same through `bind` and for parts."""
    gram = kernel(X)
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    np.testing.assert_allclose(gram, kernel(X, X.copy()), atol=1e-10)
    np.testing.assert_allclose(np.diag(gram), kernel.diag(X), rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * np.trace(gram)
    np.testing.assert_array_equal(kernel.bind(X)(Z), kernel(X, Z))
    np.testing.assert_array_equal(kernel.bind(X)(), gram)
    np.testing.assert_allclose(kernel(X, Z), kernel(Z, X).T, rtol=1e-12)


def check_gradients(kernel, X, Z):
    """`grad` and `grad_diag` equal central differences, `grad_dot` their weighted sums."""
    theta, h = kernel.theta, 1e-5
    weight = np.random.default_rng(5).normal(size=(len(X), len(Z)))
    grads, diag_grads = kernel.grad(X, Z), kernel.grad_diag(X)
    assert len(grads) == len(diag_grads) == len(theta) == len(kernel.bounds())
    for k in range(len(theta)):
        step = h * np.eye(len(theta))[k]
        above, below = kernel.with_theta(theta + step), kernel.with_theta(theta - step)
        # Central differences: error O(h^2) of third derivatives that are of the size of K.
        np.testing.assert_allclose(grads[k], (above(X, Z) - below(X, Z)) / (2 * h), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(diag_grads[k], (above.diag(X) - below.diag(X)) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(kernel.grad_dot(X, Z, weight), [np.sum(weight * g) for g in grads], rtol=1e-9, atol=1e-9)


def check_value_semantics(kernel):
    """Equal after copy, through its description and through its own theta; theta lies within the bounds."""
    assert kernel.copy() == kernel == make_kernel(kernel) == kernel_from_description(kernel.description())
    assert kernel.copy() is not kernel
    np.testing.assert_allclose(kernel.with_theta(kernel.theta).theta, kernel.theta, atol=1e-14)
    assert np.all(kernel.bounds()[:, 0] < kernel.theta) and np.all(kernel.theta < kernel.bounds()[:, 1])
