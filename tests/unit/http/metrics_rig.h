/* SPDX-License-Identifier: Apache-2.0 */
/* A log store in a folder of its own, for the tests of metrics. */
#ifndef METRICS_RIG_H
#define METRICS_RIG_H

#include "daemon/blob/logs.h"

extern struct logs *rig_logs;
extern struct err rig_err;

/* Streams of the same attempt: of a node with the ranks 0 to 3, and of one with 4 to 7. */
extern const struct log_name rig_metrics0, rig_metrics4, rig_out0;

/* The fixture of a test case. */
void metrics_rig_open(void);
void metrics_rig_close(void);

/* Stores text behind what the stream has. */
void rig_store(const struct log_name *name, const char *bytes, size_t length);
void rig_store_text(const struct log_name *name, const char *text);

/* A reader of the attempt's metrics; id NULL or "": from the start. */
struct log_reader *rig_reader(const char *id);

#endif
