"""StopRequest: the first Ctrl-C asks, the second aborts, and the handler before comes back."""

import signal
import threading

import pytest

from linadd.interrupt import StopRequest


def test_the_first_signal_asks_and_the_second_aborts():
    before, asked = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), StopRequest(lambda: asked.append(True)) as stop:
        assert not stop.is_set
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set and asked == [True]
        signal.raise_signal(signal.SIGINT)
    assert asked == [True] and signal.getsignal(signal.SIGINT) is before


def test_another_thread_changes_nothing():
    handlers = []

    def run():
        with StopRequest():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
