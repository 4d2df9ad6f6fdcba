# SPDX-License-Identifier: Apache-2.0
"""A program that was written for one process: each rank makes a world of its own."""

import socket

import torch.distributed as dist

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
print("world", dist.get_world_size())
dist.destroy_process_group()
