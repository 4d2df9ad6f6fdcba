# SPDX-License-Identifier: Apache-2.0
"""Waits for the signals that ask it to save its work: `saver.py end` then ends with 0, `saver.py stay` goes on for ever,
`saver.py acknowledge` says that it has saved, and goes on, too.
"""

import json
import os
import signal
import socket
import sys

mode = sys.argv[1]


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())  # at once and whole, whatever signal comes


def acknowledge() -> None:
    line = json.dumps({"checkpoint": {"step": 1}, "rank": int(os.environ["RANK"])}) + "\n"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as talk:
        talk.sendto(line.encode(), os.environ["GPUCTL_SOCKET"])


def save(number: int, _: object) -> None:
    say(f"saved on {signal.Signals(number).name}")
    if mode == "acknowledge":
        acknowledge()
    if mode == "end":
        sys.exit(0)


signal.signal(signal.SIGUSR1, save)
signal.signal(signal.SIGTERM, save)
say("up")
while True:
    signal.pause()
