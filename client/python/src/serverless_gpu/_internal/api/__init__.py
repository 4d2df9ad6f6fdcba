# SPDX-License-Identifier: Apache-2.0
"""The controller as this process sees it: which one, requests to it, and its event streams."""
