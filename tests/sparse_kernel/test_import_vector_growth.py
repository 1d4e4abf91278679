"""The loop over additions: candidates, stopping rule, path, what is kept when it ends early."""

from itertools import pairwise

import numpy as np
import pytest

from linadd.sparse_kernel.import_vector_growth import GrowthOptions, Supply, follow_path, grow
from tests.sparse_kernel.test_kernel_logistic import make_state, noisy_data

OPTIONS = GrowthOptions("revised", "newton", 1e-3, 1, None, None, 1, 0.0, 50, 1e9)


def state_of(n=60, seed=0):
    X, y_index = noisy_data(n, seed=seed)
    return make_state(X, y_index)


@pytest.mark.parametrize(("n_rows", "n_candidates", "drawn"), [(100, None, 100), (2000, None, 2000), (2001, None, 150),
                                                               (100, 7, 7), (5000, 7, 7)])
def test_number_of_candidates(n_rows, n_candidates, drawn):
    """All rows up to 2,000, 150 beyond, or what is asked for."""
    assert OPTIONS._replace(n_candidates=n_candidates).n_drawn(n_rows) == drawn


@pytest.mark.parametrize(("history", "delta_k", "converged"), [
    ([100.0], 1, False), ([100.0, 99.95], 1, True), ([100.0, 99.0], 1, False),
    ([100.0, 99.95], 2, False), ([101.0, 100.0, 99.99], 2, False), ([100.05, 100.0, 99.99], 2, True)])
def test_stopping_rule_compares_recorded_values_only(history, delta_k, converged):
    """H of the empty model is not in the history: the rule needs more than delta_k additions."""
    assert OPTIONS._replace(delta_k=delta_k).has_converged(history) is converged


def test_the_loop_stops_at_the_rule_at_the_limit_and_at_the_end_of_an_order():
    by_rule = grow(state_of(), OPTIONS, np.random.default_rng(0))
    assert OPTIONS.has_converged(by_rule.history) and not OPTIONS.has_converged(by_rule.history[:-1])
    assert by_rule.stopped == ""
    limited = grow(state_of(), OPTIONS._replace(max_import_vectors=4), np.random.default_rng(0))
    assert limited.state.indices == by_rule.state.indices[:4]
    ordered = grow(state_of(), OPTIONS, np.random.default_rng(0), order=[9, 3, 9, 5])
    assert ordered.state.indices == [9, 3, 5]  # a row that is there already depends on itself


def test_a_warm_start_records_its_refit_first():
    state = state_of()
    first = grow(state, OPTIONS._replace(max_import_vectors=5), np.random.default_rng(0))
    warm = first.state.copy()
    warm.set_reg_lambda(0.05)
    second = grow(warm, OPTIONS._replace(max_import_vectors=6), np.random.default_rng(0))
    assert second.state.indices[:5] == first.state.indices
    assert len(second.history) == 2 and second.history[0] < first.history[-1]


def test_candidates_leave_out_what_is_chosen():
    state = state_of()
    grow(state, OPTIONS._replace(max_import_vectors=5), np.random.default_rng(0))
    supply = Supply(state, OPTIONS._replace(n_candidates=20), np.random.default_rng(1), None)
    drawn = supply.candidates()
    assert len(drawn) == 20 and np.all(np.diff(drawn) > 0) and not set(drawn.tolist()) & set(state.indices)
    assert len(Supply(state, OPTIONS, None, None).candidates()) == 55


def test_path_is_nested_and_chooses_by_the_score():
    seen = []

    def judge(state):
        """Pretend that the third penalty is the best by error, the second by loss."""
        seen.append(list(state.indices))
        return [[0.9, 0.2, 0.5, 0.6][len(seen) - 1], [0.4, 0.3, 0.1, 0.1][len(seen) - 1]]

    lambdas = [10.0, 1.0, 0.1, 0.01]
    chosen, path = follow_path(state_of(), lambdas, judge, "error", OPTIONS, np.random.default_rng(0))
    assert chosen.state.reg_lambda == 0.1 and [entry["reg_lambda"] for entry in path] == lambdas
    assert all(after[: len(before)] == before for before, after in pairwise(seen))
    assert chosen.state.indices == seen[2]
    seen.clear()
    chosen, _ = follow_path(state_of(), lambdas, judge, "deviance", OPTIONS, np.random.default_rng(0))
    assert chosen.state.reg_lambda == 1.0


def test_a_path_that_runs_out_of_memory_says_so():
    chosen, path = follow_path(state_of(), [10.0, 0.01, 0.001], lambda state: [1.0, 1.0], "error",
                               OPTIONS._replace(memory_limit=8 * 60 * 6), np.random.default_rng(0))
    assert chosen.stopped.startswith("one more column of 60 rows would pass memory_limit")
    assert len(path) < 3


def test_pruning_keeps_the_state_small():
    plain = grow(state_of(120, 1), OPTIONS, np.random.default_rng(0))
    pruned = grow(state_of(120, 1), OPTIONS._replace(prune_tol=1e-3), np.random.default_rng(0))
    assert len(pruned.state.indices) < len(plain.state.indices)
    assert pruned.state.objective < 1.02 * plain.state.objective
    assert len(set(pruned.state.indices)) == len(pruned.state.indices)
