# SPDX-License-Identifier: Apache-2.0
"""Adds to the wheel the .pth file that puts the folder gpuctl_pyspark at the end of the path; pyproject.toml has no word for it."""

from __future__ import annotations

import os

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPath(build_py):
    """Builds the modules, and the path file beside them."""

    def run(self) -> None:
        """Write it last."""
        super().run()
        with open(os.path.join(self.build_lib, "gpuctl_pyspark.pth"), "w", encoding="ascii") as file:
            file.write("gpuctl_pyspark\n")


setup(cmdclass={"build_py": BuildWithPath})
