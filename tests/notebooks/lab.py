# SPDX-License-Identifier: Apache-2.0
"""A real JupyterLab on loopback, and its pages in a real browser: what a person sees and clicks, and no message between them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import nbformat

from harness import PATIENCE, eventually
from kernel import CELL_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TOKEN = "notebooks"
SHOTS = os.environ.get("GPUCTL_SCREENSHOTS")  # a folder that is given the pictures which the tests take

#: JupyterLab asks nobody on the internet for news, and keeps each cell of a notebook in the page.
SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none", "autoStartDefaultKernel": True},
}


class Lab:
    """A JupyterLab whose notebooks lie in a folder and whose kernels have an environment."""

    def __init__(self, folder: Path, environment: dict[str, str], short: Path):
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self._environment = {
            **environment,
            "HOME": str(folder),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(short),
            "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
            "IPYTHONDIR": str(folder / "ipython"),
        }
        for name, value in SETTINGS.items():
            self.set(name, value)
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            self.port = held.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def set(self, name: str, value: dict[str, Any]) -> None:
        """Write a setting of the user; a page takes it when it is opened."""
        extension, _, plugin = name.partition("/")
        path = self.folder / "settings" / "@jupyterlab" / extension / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def start(self) -> Lab:
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser", "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
            f"--ServerApp.root_dir={self.notebooks}", "--KernelManager.transport=ipc",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ]  # fmt: skip
        with (self.folder / "jupyterlab.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.notebooks, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        eventually(self._serves, "JupyterLab")
        return self

    def _serves(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (self.folder / "jupyterlab.log").read_text()
        try:
            urllib.request.urlopen(f"{self.url}/api/status?token={TOKEN}", timeout=PATIENCE).close()
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def stop(self) -> None:
        """End it and its kernels."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE)

    def write(self, name: str, *cells: str) -> str:
        """Put a notebook of some cells there."""
        document = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        document.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(document, self.notebooks / name)
        return name

    def read(self, name: str) -> Any:
        """A notebook as it was saved."""
        return nbformat.read(self.notebooks / name, as_version=4)


class Page:
    """A notebook that is open in a tab of the browser."""

    def __init__(self, tab: Any, lab: Lab, name: str):
        self.tab = tab
        self.name = name
        self._lab = lab
        self.open()

    def open(self) -> None:
        """Load the page; also anew, as the browser's reload does."""
        self.tab.goto(f"{self._lab.url}/doc/tree/{self.name}?token={TOKEN}&reset")
        self.tab.wait_for_selector(".jp-Notebook .jp-Cell", timeout=PATIENCE * 1000)
        self.tab.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'", timeout=PATIENCE * 1000
        )

    def command(self, name: str) -> None:
        """What a menu would do."""
        self.tab.evaluate("name => void window.jupyterapp.commands.execute(name)", name)

    def save(self) -> None:
        """Save the notebook."""
        self.tab.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")

    def output(self, index: int) -> str:
        """The text of what a cell has shown."""
        return str(self.cell(index).locator(".jp-Cell-outputArea").inner_text())

    def cell(self, index: int) -> Any:
        """A cell of code."""
        return self.tab.locator(".jp-CodeCell").nth(index)

    def begin(self, index: int) -> None:
        """Run a cell by the keys that people use."""
        self.cell(index).locator(".jp-InputPrompt").click()
        self.tab.keyboard.press("Control+Enter")

    def busy(self, index: int) -> bool:
        return "[*]" in self.cell(index).locator(".jp-InputPrompt").inner_text()

    def wait(self, index: int) -> None:
        """Until the cell has ended."""
        eventually(lambda: not self.busy(index), f"the end of cell {index}", CELL_S)

    def stop(self) -> None:
        """The button that interrupts the kernel; a narrow page has none, and there the keys."""
        button = self.tab.locator('[data-command="notebook:interrupt-kernel"]').first
        if button.is_visible():
            button.click()
        else:
            self.tab.keyboard.press("i")
            self.tab.keyboard.press("i")

    def shoot(self, name: str) -> None:
        """Take a picture, where somebody wants one."""
        if SHOTS is not None:
            self.tab.screenshot(path=str(Path(SHOTS) / f"{name}.png"))
