# SPDX-License-Identifier: Apache-2.0
"""What is sent with a job: the pickled function, modules, files, variables and the environment of this Python."""
