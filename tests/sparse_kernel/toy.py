"""The toy data T1 of the design page, which all of its test vectors refer to."""

import numpy as np

T1 = np.array([(0, 0), (1, 0.5), (-0.5, 1), (1.5, -1), (-1, -1), (0.3, 1.2), (-1.2, 0.4), (0.8, -0.6)])
Y = np.array([1, 1, -1, 1, -1, -1, -1, 1])
Y3 = np.array([0, 0, 1, 2, 1, 1, 2, 2])
XS = np.array([(0.2, -0.3), (-1, 0.9)])
BIAS = 0.1
