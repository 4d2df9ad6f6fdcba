# SPDX-License-Identifier: Apache-2.0
"""A notebook with a real kernel. What the kernel sends while a cell runs is kept, so that a test sees each state of a display and not its
last one only, and can act in the middle.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from slowness import patient

CELL_S = int(patient(180))  # that a cell may take: ranks may import torch under sanitized daemons on few cores

Message = dict[str, Any]


class _Client(NotebookClient):
    """Tells of each message before it is put into the notebook."""

    heard: Callable[[Message], None]

    def process_message(self, msg: Message, cell: Any, cell_index: int) -> Any:
        self.heard(msg)
        return super().process_message(msg, cell, cell_index)


class Notebook:
    """Some cells; `run` executes one of them. It stays open until `close`."""

    def __init__(self, cells: list[str], environment: dict[str, str], folder: Path, sockets: Path, document: Any = None):
        self.document = document or nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        self.messages: list[Message] = []  # of the cell that was run last
        self.on_message: Callable[[Message], None] = lambda message: None
        self.kernel = KernelManager(kernel_name="python3", transport="ipc", connection_file=str(sockets / f"{uuid.uuid4().hex[:8]}.json"))
        self._client = _Client(self.document, km=self.kernel, timeout=CELL_S, allow_errors=True, resources={"metadata": {"path": folder}})
        self._client.heard = self._hear
        self._client.reset_execution_trackers()
        self._client.start_new_kernel(env=environment, cwd=str(folder))
        self._client.start_new_kernel_client()

    def _hear(self, message: Message) -> None:
        self.messages.append(message)
        self.on_message(message)

    def run(self, index: int) -> list[Any]:
        """Execute a cell to its end; return its outputs."""
        self.messages.clear()
        cell = self.document.cells[index]
        self._client.execute_cell(cell, index)
        return list(cell.outputs)

    def interrupt(self) -> None:
        """As the stop button does; from a thread, because the one that runs the cell is busy."""
        thread = threading.Thread(target=self.kernel.interrupt_kernel)
        thread.start()
        thread.join()

    def close(self) -> None:
        self._client._cleanup_kernel()

    # --- what was sent ---

    def displayed(self, kind: str = "text/html") -> list[str]:
        """All states of the card of the cell that was run last, in order."""
        shown = [message["content"] for message in self.messages if message["msg_type"] in ("display_data", "update_display_data")]
        return [content["data"][kind] for content in shown if not content["transient"]["display_id"].endswith("-ranks")]


def streams(outputs: list[Any], name: str = "stdout") -> str:
    """What the cell wrote to a stream."""
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == name)


def displays(outputs: list[Any]) -> list[str]:
    """The HTML of each display of a cell, as it is in the end."""
    return [output.data["text/html"] for output in outputs if output.output_type == "display_data"]


def errors(outputs: list[Any]) -> list[Any]:
    """The errors of a cell."""
    return [output for output in outputs if output.output_type == "error"]
