"""The reference engine: the steps as the paper writes them, in plain NumPy, for any problem."""

from __future__ import annotations

import numpy as np

from pommel.engines.engine import Engine, GradientStep, Walk
from pommel.problem import Vector


class Reference(Engine):
    """O(n + d) work a step, using nothing of a problem but `draw`, `sample_gradients` and the projections."""

    name = "reference"

    def advance(self, rule: GradientStep, walk: Walk, draws: Vector) -> None:
        X, Y, problem = rule.primal_set, rule.dual_set, self.problem
        for u in draws:
            x, y = walk.x, walk.y
            walk.sum_x += x
            i = problem.draw(u, y, rule.sampling)
            grad_x, grad_y = problem.sample_gradients(x, y, i, rule.sampling, walk.center)
            z = y + rule.dual_step * Y.metric * grad_y
            walk.x = X.project(x - rule.primal_step * X.metric * grad_x)
            walk.y = Y.project(z)
            if walk.center is not None and problem.dual_curvature is not None:
                walk.center += problem.dual_curvature * moved_center(y, z, Y.metric)
            walk.steps += 1
            if not walk.finite:
                return


def moved_center(y: Vector, z: Vector, metric: float | Vector) -> float:
    """How far a step to z takes the center along, per curvature of phi*.

    It estimates the multiplier of sum(y) = 1, which changes with x on the way. Where rows are sent to their best
    response to a center that is too low, z_+ sums to more than one, and to less if it is too high: this is a step of
    stochastic approximation, and comes to rest where y is the best response to x. With a center that stands still all
    rows whose losses have fallen since the restart are first sent too low, many to zero and back, which is work.
    """
    return float(np.sum(np.maximum(z, 0.0) - y) / np.broadcast_to(metric, y.shape).sum())
