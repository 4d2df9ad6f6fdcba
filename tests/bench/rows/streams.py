# SPDX-License-Identifier: Apache-2.0
"""500 idle sessions into running jobs: what they cost the controller.

Four jobs of one node hold 125 `exec` sessions each, whose commands sleep; a session has two connections, of the client and of the node.
`mb`: growth of the controller's VmRSS from the first two sessions to 500 more, in 1,000,000 bytes; plain HTTP, and TLS with the authority
that `gpuctld init` makes.

Gates: 20 MB with TLS, 10 MB plain.
"""

from __future__ import annotations

import sys

from common import Goal, cluster, controller_pid, prepare, resident_kib, worst
from harness import ROOT, Cluster, make_tls

sys.path.insert(0, str(ROOT / "tests" / "e2e" / "streams"))
import joined  # noqa: E402

GOALS = (
    Goal("tls.mb", "resident memory of 500 idle sessions, TLS", "MB", 20),
    Goal("plain.mb", "resident memory of 500 idle sessions, plain", "MB", 10),
)
SESSIONS = 500
JOBS = 4
#: Those that come before the first reading: what the controller makes once is no cost of a session.
FIRST = 2


class AuthorityCluster(Cluster):
    """A controller and agents with the authority of `gpuctld init`."""

    def controller_command(self) -> list[str]:
        if self.cacert is None:
            self.controller_arguments = [*self.controller_arguments, *make_tls(self.folder)]
        return super().controller_command()


def measure(tls: bool) -> dict[str, float]:
    with cluster([JOBS], kind=AuthorityCluster if tls else Cluster) as ours:
        jobs = [joined.running(ours, joined.SLEEP) for _ in range(JOBS)]
        pid = controller_pid(ours)
        held = [joined.join(ours.api, jobs[0], command=joined.SLEEP) for _ in range(FIRST)]
        before = resident_kib(pid)
        held += [joined.join(ours.api, jobs[number % JOBS], command=joined.SLEEP) for number in range(SESSIONS)]
        grown = resident_kib(pid) - before
        for session in held:
            session.close()
        ours.cancel_all()
    print(f"{'TLS' if tls else 'plain'}: {grown} KiB", flush=True)
    return {"mb": round(grown * 1024 / 1e6, 2), "kib_each": round(grown / SESSIONS, 1)}


def run() -> dict[str, object]:
    prepare()
    figures = {"plain": measure(tls=False), "tls": measure(tls=True)}
    return {"ratio": worst(GOALS, figures), **figures}
