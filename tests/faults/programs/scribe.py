# SPDX-License-Identifier: Apache-2.0
"""A gang of two ranks that go in step and number every line that they write, until a file appears.

    scribe.py GATE

Each rank first says who it is: pid and start time, which name the process as long as the machine is up. It writes down the signals that
anybody sends it. A rank whose peer goes away fails, so whatever disturbs one of them is seen in the job's state.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path

#: Between two lines: with 16 ranks on two cores the machine still has time for what is tested.
PACE_S = 0.02

gate = Path(sys.argv[1])
rank = int(os.environ["RANK"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def note(number: int, frame: object) -> None:
    os.write(1, b"signaled %d\n" % number)


def meet() -> socket.socket:
    if rank == 0:
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(address)
            server.listen(1)
            return server.accept()[0]
    for _ in range(6000):  # a minute
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise SystemExit("rank 0 never came")


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT):
    signal.signal(number, note)
started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
print(f"pid {os.getpid()} {started}", flush=True)
peer = meet()
count = 0
while True:
    os.write(1, b"out %d\n" % count)
    os.write(2, b"err %d\n" % count)
    count += 1
    # Rank 0 decides when it is over, so that both write the same number of lines.
    if rank == 0:
        peer.sendall(b"e" if gate.exists() else b"n")
        word = peer.recv(1)
    else:
        word = peer.recv(1)
        peer.sendall(word)
    if word == b"e":
        break
    if word != b"n":
        raise SystemExit("the peer is gone")
    time.sleep(PACE_S)
print(f"wrote {count}", flush=True)
