# SPDX-License-Identifier: Apache-2.0
"""The implementation of the public modules of serverless_gpu. It may change with any version."""
