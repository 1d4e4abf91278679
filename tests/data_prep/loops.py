"""The image features pixel by pixel, written from the definition: the slow twin of `data_prep`."""

import math

import numpy as np


def shares(gy, gx, n_bins, start, span):
    """Magnitude split over bins by their circular distance, in widths, to the angle."""
    width = span / n_bins
    angle = math.atan2(gy, gx)
    out = []
    for i in range(n_bins):
        distance = abs((angle - start - (i + 0.5) * width + span / 2) % span - span / 2) / width
        out.append(math.hypot(gy, gx) * max(0.0, 1.0 - distance))
    return out


def loop_features(image, gradient, bins, grids, floor, tile=None):
    """Features of one image with values in [0, 1].

    `gradient(image, y, x)` gives (gy, gx); `bins` = (n_bins, start, span); `grids` lists (block, top, left, weight).
    Without `tile` a histogram is divided by the energy of the image, else by that of the tile of this size it is in.
    """
    height, width = image.shape
    energy = {}
    spread = {}
    for y in range(height):
        for x in range(width):
            gy, gx = gradient(image, y, x)
            spread[y, x] = shares(gy, gx, *bins)
            key = (y // tile, x // tile) if tile else 0
            energy[key] = energy.get(key, floor) + math.hypot(gy, gx)
    out = []
    for block, top, left, weight in grids:
        for y0 in range(top, height - block + 1, block):
            for x0 in range(left, width - block + 1, block):
                key = (y0 // tile, x0 // tile) if tile else 0
                for i in range(bins[0]):
                    inside = [spread[y0 + a, x0 + b][i] for a in range(block) for b in range(block)]
                    out.append(weight * math.fsum(inside) / energy[key])
    return np.array(out)
