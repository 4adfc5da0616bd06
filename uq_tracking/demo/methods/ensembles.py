"""Uncertainty as the disagreement of several predictions: five ways to make them differ.

Their mean is the prediction and their standard deviation the uncertainty, as in MeRCI (2018), section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from uq_tracking.demo.methods.base import Advance, Effort, Estimate, Map, seeds, spread
from uq_tracking.demo.network import Architecture
from uq_tracking.demo.regressor import HeightModel
from uq_tracking.demo.terrain import Terrain

HIDDEN: tuple[tuple[int, ...], ...] = (
    (64, 64), (128,), (64, 64, 64), (32, 32), (128, 64), (32, 32, 32),
    (128, 128), (64,), (96, 48), (64, 32, 16), (48, 48, 48, 48), (64, 128),
)  # fmt: skip
"""Hidden layers of the different networks."""

DROPOUT = Architecture((128, 128), dropout=0.1)
"""Wider than the others, because dropout leaves only part of a network active."""


def multi_inits(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """Networks with different random initialisations (Lakshminarayanan et al. 2017)."""

    def member(member_seed: int) -> Map:
        model = HeightModel(Architecture(), member_seed)
        model.fit(terrain.positions, terrain.heights, effort.schedule)
        return model.predict(terrain.cells)

    chosen = seeds(seed, "multi-inits", effort.members)
    return spread(terrain, _each(member, chosen, advance))


def bagging(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """Networks trained on bootstrap samples of the measurements (Breiman 1996)."""
    n = len(terrain.heights)

    def member(member_seed: int) -> Map:
        drawn = np.random.default_rng(member_seed).integers(0, n, n)
        model = HeightModel(Architecture(), member_seed)
        model.fit(terrain.positions[drawn], terrain.heights[drawn], effort.schedule)
        return model.predict(terrain.cells)

    chosen = seeds(seed, "bagging", effort.members)
    return spread(terrain, _each(member, chosen, advance))


def multi_networks(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """Networks of different depth and width."""

    def member(choice: tuple[tuple[int, ...], int]) -> Map:
        hidden, member_seed = choice
        model = HeightModel(Architecture(hidden), member_seed)
        model.fit(terrain.positions, terrain.heights, effort.schedule)
        return model.predict(terrain.cells)

    hidden = HIDDEN[: effort.members]
    chosen = zip(hidden, seeds(seed, "multi-networks", len(hidden)), strict=True)
    return spread(terrain, _each(member, list(chosen), advance))


def multi_epochs(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """Snapshots of one network from several epochs in the second half of its training."""
    model = HeightModel(Architecture(), seeds(seed, "multi-epochs", 1)[0])
    epochs = effort.schedule.epochs
    kept = {round(epoch) for epoch in np.linspace(epochs / 2, epochs, effort.members)}
    members: list[Map] = []

    def keep(epoch: int) -> None:
        if epoch in kept:
            members.append(model.predict(terrain.cells))
        advance(epoch / epochs)

    model.fit(terrain.positions, terrain.heights, effort.schedule, after_epoch=keep)
    return spread(terrain, members)


def mc_dropout(terrain: Terrain, effort: Effort, seed: int, advance: Advance) -> Estimate:
    """One network whose dropout stays active during prediction (Gal and Ghahramani 2016)."""
    model_seed, pass_seed = seeds(seed, "mc-dropout", 2)
    model = HeightModel(DROPOUT, model_seed)
    epochs = effort.schedule.epochs
    model.fit(
        terrain.positions,
        terrain.heights,
        effort.schedule,
        after_epoch=lambda epoch: advance(epoch / epochs / 2),
    )
    return spread(terrain, list(model.sample(terrain.cells, effort.passes, pass_seed)))


def _each(member: Callable[..., Map], choices: Iterable[object], advance: Advance) -> list[Map]:
    choices = list(choices)
    members = []
    for done, choice in enumerate(choices, start=1):
        members.append(member(choice))
        advance(done / len(choices))
    return members
