# SPDX-License-Identifier: Apache-2.0
"""A controller whose calls fail, the visitor who asks it, and what must hold whatever failed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controller import Controller
from customer import Away, Customer, Request, check_all
from harness import eventually
from slowness import patient
from torture import Fault, Torture


def seed() -> int:
    return int(os.environ.get("GPUCTL_SEED", "1"))


def unclean(program: str, code: int, said: str) -> str | None:
    """Why this is no clean end; None: it is."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if "Sanitizer:" in said or "runtime error:" in said:
        return f"a sanitizer found something:\n{said[-3000:]}"
    if code == -signal.SIGABRT:
        return None if last == f"{program}: out of memory" else f"it aborted, and said last: {last}"
    if 0 < code < 128:
        return None if last else f"it ended with {code} without a word"
    return f"it ended with {code}, and said last: {last}"


#: What the rank of each attempt says: the bytes of a log are known by where they stand.
PATTERN = b"".join(b"line %d\n" % number for number in range(20_000))


class Visitor(Customer):
    """A customer who also reads, and has its node send what ranks say."""

    def __init__(self, api: Callable[[str | None], Any], name: str, seed: int):
        super().__init__(api, name, seed)
        self.sent: dict[int, int] = {}  # by epoch: as much of PATTERN as was taken

    def plain(self, method: str, path: str, statuses: tuple[int, ...], document: Any = None) -> Request:
        return self.ask("plain", method, path, document, about=statuses)

    def learn_plain(self, request: Request, reply: Any) -> None:
        assert request.status in request.about, (request.path, request.status, reply)

    def learn_submit(self, request: Request, reply: Any) -> None:
        assert request.status == (422 if json.loads(request.body)["gpus"] > 1000 else 201), (request.status, reply)
        super().learn_submit(request, reply)

    def running(self) -> list[int]:
        return [epoch for epoch, attempt in self.attempts.items() if attempt.running and not attempt.gone and not attempt.stopped]

    def log(self) -> None:
        """The next piece of what a rank says."""
        for epoch in self.running()[:1]:
            begin = self.sent.get(epoch, 0)
            path = f"/v1/agent/logs?node={self.name}-node&epoch={epoch}&rank=0&stream=stdout&offset={begin}"
            self.ask("log", "POST", path, data=PATTERN[begin : begin + 200], about=epoch)

    def learn_log(self, request: Request, reply: Any) -> None:
        """After a crash less may have been received than was said before, never less than was durable: it is sent again."""
        assert request.status in (200, 409), (request.status, reply)
        if "received" in reply:
            self.sent[request.about] = reply["received"]

    def read(self, path: str, accept: str | None = None) -> tuple[int, bytes]:
        status, _, reply = self.exchange(self.make_api(None), "GET", path, None, {"Accept": accept} if accept else {})
        return status, reply

    def check(self, values: dict[int, bytes]) -> None:
        super().check(values)
        for epoch, sent in self.sent.items():
            job = self.attempts[epoch].job
            number = next(row["attempt"] for row in self.get(f"/v1/jobs/{job}/attempts")["attempts"] if int(row["epoch"]) == epoch)
            status, shown = self.read(f"/v1/jobs/{job}/logs?attempt={number}")
            assert status == 200 and PATTERN.startswith(shown) and len(shown) <= sent, (job, epoch, status, len(shown), sent)


@dataclass
class World:
    """A controller that is tortured, a visitor, and what became of all that."""

    controller: Controller
    torture: Torture
    visitor: Visitor
    wrong: list[str] = field(default_factory=list)
    struck: dict[str, int] = field(default_factory=dict)
    ends: int = 0
    said: int = 0  # bytes of the log before this life

    def start(self) -> bool:
        self.said = self.controller.log.stat().st_size if self.controller.log.exists() else 0
        return self.controller.start(["env", *(f"{name}={value}" for name, value in self.torture.environment().items())])

    def must_start(self) -> None:
        assert self.start(), self.words()

    def words(self) -> str:
        """What this life has said."""
        with self.controller.log.open("rb") as log:
            log.seek(self.said)
            return log.read().decode(errors="replace")

    def note_end(self, what: str, well: bool = False) -> None:
        """It has ended, or does so now: as it should? It may have ended well where it was told to end."""
        eventually(lambda: not self.controller.alive(), f"the controller to end after {what}", patient(20))
        self.ends += 1
        code = self.controller.wait()
        problem = None if well and code == 0 else unclean("gpuctld", code, self.words())
        if problem is not None:
            self.wrong.append(f"{what}: {problem}")

    def strikes(self) -> str | None:
        """Where it struck; nothing fails any more."""
        where = self.torture.struck()
        self.torture.disarm()
        if where is not None:
            self.struck[where] = self.struck.get(where, 0) + 1
        return where

    def strike(self, name: str, act: Callable[[], Any], fault: Fault) -> str | None:
        """The operation with the fault, and then the world without it. Where it struck."""
        self.torture.arm(fault)
        failure = ""
        try:
            act()
        except Away:
            pass
        except (AssertionError, ValueError, KeyError) as error:
            failure = f"{type(error).__name__} {str(error)[:800]}"
        where = self.strikes()
        what = f"{name}, {fault.kind.name} {fault.number} at {where}"
        if failure:
            self.wrong.append(f"{what}: {failure}")
        self.recover(what)
        return where

    def recover(self, what: str) -> None:
        """What was left open is asked again, of a new controller where the old one ended."""
        for _ in range(3):
            if not self.controller.alive():
                self.note_end(what)
                self.must_start()
            try:
                self.visitor.settle()
                self.visitor.get("/version")
                return
            except Away as away:
                assert away.status == 0 or away.code in ("unknown_outcome", "disk_full"), f"{what}: then {away}"
                eventually(lambda: not self.controller.alive(), f"a controller that does not answer to end: {what}", patient(20))
            except AssertionError as error:
                self.wrong.append(f"{what}: asked again: {str(error)[:800]}")
                self.visitor.asked = [request for request in self.visitor.asked if request.status]
                return
        raise AssertionError(f"{what}: it ends again and again")

    def end(self) -> None:
        """All that was acknowledged is there, the controller ends well, and all that was found is told."""
        check_all(self.controller.api(), [self.visitor])
        assert self.controller.process is not None
        self.controller.process.send_signal(signal.SIGTERM)
        assert self.controller.wait() == 0, self.words()
        strikes = sum(self.struck.values())
        print(f"{strikes} faults at {len(self.struck)} places; the controller ended {self.ends} times; {len(self.wrong)} went wrong")
        assert strikes > 0
        assert not self.wrong, f"GPUCTL_SEED={seed()}: {len(self.wrong)} of {strikes}\n" + "\n".join(self.wrong)
