# SPDX-License-Identifier: Apache-2.0
"""The sitecustomize.py of a folder that comes first on a rank's PYTHONPATH: starts gpuctl_watch, which is one folder above.

Then it gives way to the sitecustomize that Python would have found without it.
"""

import os
import sys

folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
if hasattr(sys, "addaudithook"):  # not for an older Python
    sys.path.insert(0, os.path.dirname(folder))
    try:
        import gpuctl_watch

        gpuctl_watch.begin()
    finally:
        sys.path.pop(0)
own = sys.modules.pop(__name__)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  # the other one
except ImportError:
    sys.modules[__name__] = own
