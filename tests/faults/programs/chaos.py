# SPDX-License-Identifier: Apache-2.0
"""A rank of a gang in which something goes wrong: the ranks meet at MASTER_ADDR, leave litter behind, and then one of them ends as told.

    chaos.py PLAN    a JSON object; each part may be absent
        how      {"RANK": "kill" | "segfault" | "abort" | "exit N" | "exception" | "stop" | "absent"}: what becomes of that rank
        manner   of all the others: "wait" (default), "deaf" to TERM, "contagious": they end with 1 when a peer does
        litter   of all ranks: any of "daemons", "children", "quiet", "flood", "shm", "sysv", "listener", "files"
        mark     a folder for RANK.started, RANK.ready to end, RANK.ended: files that hold the moment, on the clock of all processes
        gate     a file whose coming the ranks wait for before they meet

Without `how` all ranks succeed. It needs nothing but Python, and is started with -I -S, which takes 10 ms.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
job = os.environ["GPUCTL_JOB_ID"]
plan = json.loads(sys.argv[1])
how = {int(who): what for who, what in plan.get("how", {}).items()}
manner = plan.get("manner", "wait")
mark = Path(plan["mark"]) if "mark" in plan else None
kept: list[object] = []

#: Between the end of a peer and one that follows from it, as of a program that raises, prints and cleans up. Sockets are closed
#: before a process counts as ended, so that one which follows at once may overtake the first.
CONTAGION_S = 0.25


def note(what: str, value: float | None = None) -> None:
    """Whole or not at all: this rank may be killed at any moment."""
    if mark is not None:
        part = mark / f"{rank}.part"
        part.write_text(f"{time.clock_gettime(time.CLOCK_MONOTONIC) if value is None else value}\n")
        part.rename(mark / f"{rank}.{what}")


def end_as(what: str) -> None:
    """End this process in that way; stop and absent: be there, and do nothing."""
    note("ended")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "segfault":
        import ctypes

        ctypes.string_at(0)
    elif what == "abort":
        os.abort()
    elif what.startswith("exit"):
        os._exit(int(what.split()[1]))
    elif what == "exception":
        raise RuntimeError(f"rank {rank} has had enough")
    elif what == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        signal.pause()


def connect(address: tuple[str, int]) -> socket.socket:
    for _ in range(3000):
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.005)
    raise TimeoutError(f"rank {rank}: nobody listens at {address}")


def meet() -> dict[int, socket.socket]:
    """The sockets to peers by rank: rank 0 has one to each, the others one to rank 0."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank > 0:
        peer = connect(address)
        peer.sendall(bytes([rank]))
        assert peer.recv(1) == b"!"
        return {0: peer}
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(world)
        peers: dict[int, socket.socket] = {}
        while len(peers) < world - 1:
            peer = server.accept()[0]
            peers[peer.recv(1)[0]] = peer
    for peer in peers.values():
        peer.sendall(b"!")
    return peers


# --- litter ------------------------------------------------------------------------------------------------------------------


def daemons() -> None:
    """A process that left its parent and its session, deaf to TERM, with a child of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.fork()
            while True:
                signal.pause()
        os._exit(0)
    os.wait()


def children() -> None:
    for _ in range(3):
        kept.append(subprocess.Popen(["sleep", "1000"]))


def quiet() -> None:
    """Its supervisor sees the end of both streams long before that of the process."""
    nothing = os.open("/dev/null", os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def flood() -> None:
    """A child that writes for ever, without a line end: 2 MB/s, as what is written is shipped before an end is told."""
    if os.fork() == 0:
        while True:
            os.write(1, b"x" * 65536)
            time.sleep(0.03)


def shm() -> None:
    Path(f"/dev/shm/chaos-{job}-{rank}").write_bytes(b"x" * 65536)


def sysv() -> None:
    import ctypes

    libc = ctypes.CDLL(None)
    key = 0x47000000 | (zlib.crc32(job.encode()) & 0xFFFF) << 8 | rank
    for made in (libc.shmget(key, 4096, 0o1600), libc.semget(key, 1, 0o1600), libc.msgget(key, 0o1600)):
        assert made >= 0, key


def listener() -> None:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    kept.append(server)
    note("port", server.getsockname()[1])


def files() -> None:
    for number in range(20):
        Path(f"litter-{number}").write_bytes(b"x" * 100_000)


LITTER = {
    "daemons": daemons, "children": children, "quiet": quiet, "flood": flood,
    "shm": shm, "sysv": sysv, "listener": listener, "files": files,
}  # fmt: skip


# --- the rank ----------------------------------------------------------------------------------------------------------------


def follow_peers(peers: dict[int, socket.socket]) -> None:
    """Wait for the end of any peer, then end with 1."""
    import select

    select.select(list(peers.values()), [], [])
    time.sleep(CONTAGION_S)
    note("ended")
    os._exit(1)


def main() -> None:
    note("started")
    while "gate" in plan and not Path(plan["gate"]).exists():
        time.sleep(0.005)
    if manner == "deaf" and rank not in how:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    peers = meet() if world > 1 else {}
    for peer in peers.values():
        os.dup(peer.fileno())  # so that a peer sees the end of this process, not that of its interpreter some time before
    for what in plan.get("litter", []):
        LITTER[what]()
    note("ready")
    if rank in how:
        end_as(how[rank])
    elif not how:
        note("ended")
        os._exit(0)
    elif manner == "contagious":
        follow_peers(peers)
    while True:
        signal.pause()


main()
