"""The list of encoders: name -> class, and how to make or restore one."""

from linadd.encoders.bspline import BSpline
from linadd.encoders.fourier import Fourier
from linadd.encoders.hermite import Hermite
from linadd.encoders.identity import Identity
from linadd.errors import ConfigError

ENCODERS = {encoder.name: encoder for encoder in (BSpline, Fourier, Hermite, Identity)}


def make_encoder(name, **options):
    """An unfitted encoder by its name in the list.

    Parameters
    ----------
    name : str
        Key of ENCODERS.
    **options
        Arguments of its class.

    Raises
    ------
    ConfigError
        On an unknown name or option; lists those that exist.
    """
    if name not in ENCODERS:
        raise ConfigError(f"encoder: {name!r} is not one of {', '.join(ENCODERS)}.")
    try:
        return ENCODERS[name](**options)
    except TypeError as error:
        raise ConfigError(f"encoder {name}: {error}.") from None


def from_state(name, options, tensors):
    """A fitted encoder from what its `name`, `options` and `tensors()` gave.

    Parameters
    ----------
    name : str
        Key of ENCODERS.
    options : dict
        Arguments of its class.
    tensors : dict of arrays
        Its state.
    """
    return make_encoder(name, **options).restore(tensors)
