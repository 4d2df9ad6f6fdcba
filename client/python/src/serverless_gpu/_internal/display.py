# SPDX-License-Identifier: Apache-2.0
"""Chooses how a job is shown while it is waited for: as a card in the cell of a notebook, with a progress line in a terminal, or line by
line anywhere else. The only place that decides so.
"""

from __future__ import annotations

import sys
from typing import Callable, Protocol

from serverless_gpu._internal.controller import Controller
from serverless_gpu._internal.messages import Messages


class Display(Protocol):
    """Shows one job. `run` may be called again after an interrupt and goes on where it was."""

    def run(self) -> str:
        """Show the job until it is over; return its state. Raises ControllerError."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. IPython is not imported for it: a kernel has done so."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def of(controller: Controller, job_id: str, messages: Messages, count_ranks: Callable[[], int]) -> Display:
    """The display for a job, by where output goes at this moment. `count_ranks` is asked when the job has written something."""
    if in_notebook():
        from serverless_gpu._internal.cell import Cell
        from serverless_gpu._internal.live_renderer import Live

        return Live(controller, job_id, Cell(controller.context.url, job_id, count_ranks))
    if sys.stderr is not None and sys.stderr.isatty():
        from serverless_gpu._internal.live_renderer import Live
        from serverless_gpu._internal.terminal import Terminal

        return Live(controller, job_id, Terminal(messages, count_ranks))
    from serverless_gpu._internal.plain_renderer import Plain

    return Plain(controller, job_id, messages, count_ranks)
