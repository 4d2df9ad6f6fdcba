# SPDX-License-Identifier: Apache-2.0
"""Calls and jobs: their options, submission, handles, values and failures."""
