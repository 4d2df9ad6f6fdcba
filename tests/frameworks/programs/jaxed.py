# SPDX-License-Identifier: Apache-2.0
"""JAX as its users write it for many hosts: initialize(), arrays over all processes, one jitted step; with no launcher, one process."""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS, BATCH, INPUTS, RATE = 5, 8, 6, 0.1


def train() -> tuple[int, int, float]:
    """(processes, devices of all processes, loss after the last step)."""
    jax.config.update("jax_enable_x64", True)
    if "RANK" in os.environ:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # newer versions have that by default
    mesh = Mesh(np.array(jax.devices()), ("batch",))
    over_batch, everywhere = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    random = np.random.default_rng(1)
    x = random.normal(size=(STEPS, BATCH, INPUTS))
    y = np.sin(x.sum(axis=2))
    each = BATCH // jax.process_count()
    mine = slice(jax.process_index() * each, (jax.process_index() + 1) * each)

    def loss(weights, x, y):
        return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)

    @jax.jit
    def step(weights, x, y):
        value, gradient = jax.value_and_grad(loss)(weights, x, y)
        return weights - RATE * gradient, value

    weights = jax.device_put(np.full(INPUTS, 0.1), everywhere)
    for k in range(STEPS):
        parts = (jax.make_array_from_process_local_data(over_batch, values[k][mine]) for values in (x, y))
        weights, last = step(weights, *parts)
    return jax.process_count(), jax.device_count(), float(last)


def main() -> None:
    if "RANK" in os.environ:
        jax.distributed.initialize()
    processes, devices, loss = train()
    os.write(1, f"jaxed {processes} {devices}\n".encode())
    if jax.process_index() == 0:
        os.write(1, f"result {loss:.10f}\n".encode())


if __name__ == "__main__":
    main()
