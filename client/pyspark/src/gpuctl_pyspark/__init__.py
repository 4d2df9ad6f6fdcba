# SPDX-License-Identifier: Apache-2.0
"""A folder for the end of sys.path, in which `pyspark` is a namespace without __init__.py: a real PySpark anywhere on the path goes before
it, whichever was installed first, and none of its files is touched.
"""
