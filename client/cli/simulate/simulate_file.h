/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in files. */
#ifndef CLI_SIMULATE_FILE_H
#define CLI_SIMULATE_FILE_H

#include "daemon/simulate/trace.h"
#include "proto/base/err.h"

/* Reads the trace of a file: "-" is standard input, a name that ends in ".gz" is unpacked. */
bool simulate_load(const char *path, struct trace *ret_trace, struct err *err);
/* Writes the trace as CSV, packed where the name ends in ".gz". */
bool simulate_save(const char *path, const struct trace *trace, struct err *err);

#endif
