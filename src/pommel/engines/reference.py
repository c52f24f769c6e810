"""The reference engine: the steps as the paper writes them, in plain NumPy, for any problem."""

from __future__ import annotations

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
            grad_x, grad_y = problem.sample_gradients(x, y, i, rule.sampling, rule.center)
            walk.x = X.project(x - rule.primal_step * X.metric * grad_x)
            walk.y = Y.project(y + rule.dual_step * Y.metric * grad_y)
            walk.steps += 1
            if not walk.finite:
                return
