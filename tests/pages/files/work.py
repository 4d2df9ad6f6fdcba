# SPDX-License-Identifier: Apache-2.0
"""What an example runs: says which rank it is and what it was given."""

import os
import sys

print("rank", os.environ.get("RANK", 0), "of", os.environ.get("WORLD_SIZE", 1), *sys.argv[1:])
