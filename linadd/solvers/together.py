"""Machines of several problems over the same rows, epoch after epoch, every read shared.

Where rows are read anew in every pass, a pass serves all machines, and then a certificate those that ask for one. Where
they are in memory only certificates read: a machine that asks for one waits, while the others go on, until all do. A
machine takes the steps that it would take alone; one that is over drops out.
"""

from contextlib import closing

from linadd.solvers.blocks import blocks_together
from linadd.solvers.stopping import read_together


def run_together(machines):
    """Run machines until each is over.

    Parameters
    ----------
    machines : list of DualCD
        Of problems over one source, with runs that differ in nothing.

    Returns
    -------
    int
        Reads of the source.
    """
    run, in_memory, reads = machines[0].run, machines[0].reader.whole is not None, 0
    while left := [machine for machine in machines if not machine.is_over]:
        moving = [machine for machine in left if not machine.is_waiting]
        if moving:
            n_before = moving[0].reader.reads
            stopped = run_epoch(moving)
            reads += moving[0].reader.reads - n_before
            for machine in left:
                machine.interrupted = stopped
            for machine in moving:
                machine.end_epoch()
        waiting = [machine for machine in left if machine.is_waiting]
        if waiting and (stopped or not in_memory or len(waiting) == len(left)):
            readings = [machine.reading() for machine in waiting]
            read_together(readings, run.n_threads)
            reads += 1
            for machine, reading in zip(waiting, readings, strict=True):
                machine.take(reading)
        if closed := [machine.history[-1] for machine in left if not machine.is_waiting]:
            run.on_epoch(merged(closed))
    return reads


def run_epoch(machines):
    """One epoch of each machine; returns whether it was stopped, which is asked for after each block of all."""
    for machine in machines:
        machine.start_epoch()
    with closing(blocks_together([machine.reader for machine in machines], len(machines[0].history))) as found:
        for index, blocks in found:
            for machine, block in zip(machines, blocks, strict=True):
                machine.visit(block, len(machine.history), index)
            if machines[0].run.should_stop():
                return True
    return False


def merged(records):
    """One record of several machines' epochs: sums of the objectives, the worst gap; of one machine its own."""
    if len(records) == 1:
        return records[0]
    found = {name: sum(record[name] for record in records) for name in ("objective", "dual_objective")}
    for name in ("epoch", "gap", "certified_gap", "violation"):
        values = [record[name] for record in records]
        found[name] = None if None in values else max(values)
    return found
