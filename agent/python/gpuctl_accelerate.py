# SPDX-License-Identifier: Apache-2.0
"""Runs `accelerate launch` in a gang, where it would otherwise make a separate world in each rank: gpuctl_accelerate.py OPTIONS SCRIPT
ARGUMENTS.

Accelerate itself reads its options and its configuration file and derives the variables. In a rank the script then replaces this process,
with the rank and the world of the gang. With one process a node, Accelerate starts the node's processes and is told about the other nodes.
The agent carries this file and starts it with the job's Python.
"""

from __future__ import annotations

import os
import sys
from typing import Any

#: Variables that the agent sets for a rank of a gang, and that accelerate would set otherwise.
OF_THE_GANG = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE",
    "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "ACCELERATE_USE_CPU",
)  # fmt: skip


def run_here(args: Any, prepared: dict[str, str]) -> None:
    """Replace this process by the script, with accelerate's variables and this process's place in the gang."""
    env = {name: value for name, value in prepared.items() if name not in OF_THE_GANG or name == "ACCELERATE_USE_CPU"}
    env.update((name, os.environ[name]) for name in OF_THE_GANG if name in os.environ)
    command = [] if args.no_python else [sys.executable, *(["-m"] if args.module else [])]
    command += [args.training_script, *args.training_script_args]
    os.execvpe(command[0], command, env)


def in_a_rank(launch: Any, args: Any) -> None:
    """Run one process of the gang: whichever launcher accelerate chooses, only its variables are used."""
    from accelerate.utils import launch as prepare

    launch.simple_launcher = lambda args: run_here(args, prepare.prepare_simple_launcher_cmd_env(args)[1])
    launch.multi_gpu_launcher = lambda args: run_here(args, prepare.prepare_multi_gpu_env(args))
    launch.deepspeed_launcher = lambda args: run_here(args, prepare.prepare_deepspeed_cmd_env(args)[1])
    args.num_processes, args.num_machines, args.machine_rank, args.multi_gpu = 1, 1, 0, False


def on_a_node(args: Any) -> None:
    """Run one process a node: accelerate starts a process for each device of the node."""
    nodes, each = int(os.environ["NNODES"]), int(os.environ["NPROC_PER_NODE"])
    args.num_processes, args.num_machines, args.machine_rank = nodes * each, nodes, int(os.environ["NODE_RANK"])
    if "MASTER_ADDR" in os.environ:  # a gang of one has none
        args.main_process_ip, args.main_process_port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    chosen = args.tpu or args.use_deepspeed or args.use_fsdp or args.use_megatron_lm
    args.cpu, args.multi_gpu = False, not chosen and nodes * each > 1


def main(arguments: list[str]) -> None:
    try:
        from accelerate.commands import launch
    except ImportError:  # another Python may have the program
        os.execvp("accelerate", ["accelerate", "launch", *arguments])
    args = launch.launch_command_parser().parse_args(arguments)
    if "PET_NNODES" in os.environ:
        on_a_node(args)
    else:
        in_a_rank(launch, args)
    launch.launch_command(args)


if __name__ == "__main__":
    main(sys.argv[1:])
