# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py of a folder that comes first on a rank's PYTHONPATH: begins gpuctl_watch, which lies one folder above.

Then it makes way for the sitecustomize that Python would have found without it.
"""

import os
import sys

folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
if hasattr(sys, "addaudithook"):  # an older Python is left alone
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
