# SPDX-License-Identifier: Apache-2.0
"""Chooses how to show a job during the wait: as a card in the cell of a notebook, with a progress line in a terminal, or line by line
anywhere else. No other module decides this.
"""

from __future__ import annotations

import sys
from typing import Callable, Protocol

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.messages import Messages, in_notebook


class Display(Protocol):
    """Shows one job. `run` may be called again after an interrupt; it then continues at the same point."""

    def run(self) -> str:
        """Show the job until it is over; return its state. Raises ControllerError."""


def of(controller: Controller, job_id: str, messages: Messages, count_ranks: Callable[[], int]) -> Display:
    """Return the display for a job that suits the present output. `count_ranks` is called once the job has written something."""
    if in_notebook():
        from serverless_gpu._internal.show.cell import Cell
        from serverless_gpu._internal.show.live_renderer import Live

        return Live(controller, job_id, Cell(controller.context.url, job_id, count_ranks))
    if sys.stderr is not None and sys.stderr.isatty():
        from serverless_gpu._internal.show.live_renderer import Live
        from serverless_gpu._internal.show.terminal import Terminal

        return Live(controller, job_id, Terminal(messages, count_ranks))
    from serverless_gpu._internal.show.plain_renderer import Plain

    return Plain(controller, job_id, messages, count_ranks)
