# SPDX-License-Identifier: Apache-2.0
"""Counts steps until its gate opens, and gives way when it is asked to: `goer.py CHECKPOINT GATE`. On USR1 or TERM it writes how far it
came into the checkpoint of its rank and ends with 0; started again, it goes on from there.
"""

import itertools
import os
import signal
import sys
import time
from pathlib import Path

checkpoint, gate = Path(f"{sys.argv[1]}.{os.environ['RANK']}"), Path(sys.argv[2])
asked: list[str] = []


def ask(number: int, _: object) -> None:
    asked.append(signal.Signals(number).name)


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


signal.signal(signal.SIGUSR1, ask)
signal.signal(signal.SIGTERM, ask)
begin = int(checkpoint.read_text()) if checkpoint.exists() else 0
say(f"attempt {os.environ['GPUCTL_ATTEMPT']} from step {begin}")
for step in itertools.count(begin + 1):
    if asked:
        checkpoint.write_text(str(step))
        say(f"saved step {step} on {asked[0]}")
        break
    if gate.exists():
        say("done")
        break
    time.sleep(0.01)
