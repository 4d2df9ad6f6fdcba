# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.data`: the module serverless_gpu.data itself, so that ranks, too, find it under the name in a function.

The same holds for its modules, such as `databricks.air.data.dcp_storage`.
"""

from __future__ import annotations

import sys

from serverless_gpu import data

for _part in ("checkpoint", "dataloader", "dcp_storage", "uc_volume_dataset"):
    sys.modules[f"{__name__}.{_part}"] = data
    setattr(data, _part, data)
sys.modules[__name__] = data
