# SPDX-License-Identifier: Apache-2.0
"""What the public modules of serverless_gpu are made of. It may change with any version."""
