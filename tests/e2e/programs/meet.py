# SPDX-License-Identifier: Apache-2.0
"""A gang without torch: the ranks meet at MASTER_ADDR:MASTER_PORT as any rendezvous would, then do what the arguments say.

    meet.py [count FILE] [fail RANK CODE] [hang]

count: print numbered lines until FILE exists.  fail: that rank exits with CODE, the others wait for ever.  hang: wait for ever.
"""

import os
import signal
import socket
import sys
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def say(text: str) -> None:
    print(text, flush=True)


def meet() -> list[socket.socket]:
    if rank == 0:
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen(world)
        peers = [server.accept()[0] for _ in range(world - 1)]
        for peer in peers:
            peer.sendall(b"!")
        return peers
    for _ in range(2000):
        try:
            peer = socket.create_connection((address, port))
            break
        except ConnectionRefusedError:
            time.sleep(0.005)
    assert peer.recv(1) == b"!"
    return [peer]


peers = meet()
say(f"rank {rank} of {world} met on {os.environ['GPUCTL_NODE']}")
what = sys.argv[1:]
if what[:1] == ["count"]:
    number = 0
    while not os.path.exists(what[1]):
        say(f"line {number}")
        number += 1
        time.sleep(0.005)
    say(f"counted {number}")
elif what[:1] == ["fail"]:
    if rank == int(what[1]):
        print("about to fail", file=sys.stderr, flush=True)
        sys.exit(int(what[2]))
    signal.pause()
elif what[:1] == ["hang"]:
    signal.pause()
