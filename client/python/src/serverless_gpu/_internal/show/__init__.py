# SPDX-License-Identifier: Apache-2.0
"""A job shown live, in a notebook, a terminal or a file."""
