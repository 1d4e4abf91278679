"""Machines of several problems: the steps of each alone, shared reads, one record an epoch."""

from dataclasses import replace

import numpy as np
import pytest

from linadd.solvers.dual_cd import DualCD
from linadd.solvers.memory import Memory
from linadd.solvers.together import merged, run_together
from tests.solvers.problems import make_run, toy


def machines_of(memory_limit=10**9, **choices):
    """Problems of three encoders over the same rows, the records of their run, and a function that makes machines."""
    X, y = toy(400)
    settings = [{"n_bins": 3}, {"n_bins": 3, "penalty_order": 2}, {"n_bins": 8}]
    pairs = [make_run(X, y, memory_limit=memory_limit, **choices | each) for each in settings]
    problems, records = [replace(problem, source=pairs[0][0].source) for problem, _ in pairs], []

    def make(which=range(3), **own):
        run = replace(pairs[0][1], memory=Memory(10**9), on_epoch=records.append, **own)
        machines = []
        for k in which:
            machines.append(DualCD(problems[k], run, machines))
        return machines

    return records, make


@pytest.mark.parametrize(
    ("loss", "memory_limit"), [("squared_hinge", 10**9), ("logistic", 10**9), ("logistic", 5000)]
)
def test_each_machine_takes_the_steps_that_it_takes_alone(loss, memory_limit):
    records, make = machines_of(memory_limit, loss=loss, C=20.0, max_epochs=300)
    together = make()
    reads = run_together(together)
    assert max(record["epoch"] for record in records) == max(len(machine.history) for machine in together)
    alone = [make([k])[0] for k in range(3)]
    results = [machine.solve() for machine in alone]
    for machine, expected in zip(together, results, strict=True):
        found = machine.result()
        np.testing.assert_array_equal(found.coef, expected.coef)
        assert found.history == expected.history and found.reads == expected.reads and found.converged
    assert len({len(result.history) for result in results}) > 1  # some drop out before others
    each = [result.reads for result in results]
    assert reads == max(each) if memory_limit == 10**9 else max(each) <= reads < sum(each)


def test_a_stop_certifies_all_where_they_are():
    make = machines_of(C=20.0, max_epochs=300)[1]
    questions = iter([False] * 3 + [True])
    machines = make(should_stop=lambda: next(questions))
    run_together(machines)
    results = [machine.result() for machine in machines]
    assert all(result.interrupted and result.history[-1]["certified_gap"] > 0 for result in results)
    assert max(result.passes for result in results) == 4 and next(questions, "all asked") == "all asked"


def test_a_record_of_several_machines_has_the_sums_and_the_worst():
    first = {"epoch": 3, "objective": 1.0, "dual_objective": 0.5, "gap": 0.1, "certified_gap": 0.2, "violation": None}
    second = {"epoch": 5, "objective": 2.0, "dual_objective": 1.5, "gap": 0.3, "certified_gap": None, "violation": 1.0}
    assert merged([first]) is first
    expected = {"epoch": 5, "objective": 3.0, "dual_objective": 2.0, "gap": 0.3}
    assert merged([first, second]) == expected | {"certified_gap": None, "violation": None}
    assert merged([first, first])["certified_gap"] == 0.2
