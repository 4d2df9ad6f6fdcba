# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.data`: serverless_gpu.data itself, so that a function that names it finds it on the ranks, too. So are its modules, such
as `databricks.air.data.dcp_storage`.
"""

from __future__ import annotations

import sys

from serverless_gpu import data

for _part in ("checkpoint", "dataloader", "dcp_storage", "uc_volume_dataset"):
    sys.modules[f"{__name__}.{_part}"] = data
    setattr(data, _part, data)
sys.modules[__name__] = data
