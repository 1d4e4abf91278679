"""Ctrl-C: once asks for a stop at the next good place, twice aborts."""

import signal
import threading

__all__ = ["StopRequest"]


class StopRequest:
    """A context in which the first SIGINT sets `is_set` and the second raises KeyboardInterrupt.

    Outside the main thread, where Python delivers no signals, nothing is changed.

    Parameters
    ----------
    on_first : callable, optional
        Called, without arguments, at the first SIGINT.

    Attributes
    ----------
    is_set : bool
        A stop was asked for.
    """

    def __init__(self, on_first=lambda: None):
        self.on_first, self.is_set, self.previous = on_first, False, None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.previous = signal.signal(signal.SIGINT, self.handle)
        return self

    def __exit__(self, *exception):
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def handle(self, number, frame):
        """The signal handler."""
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        self.on_first()
