/* SPDX-License-Identifier: Apache-2.0 */
/* The store of one test: a temporary folder, its worker and its logs. */
#include "tests/unit/http/metrics_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/files/files.h"
#include "proto/limits_agent.h"

struct logs *rig_logs;
struct err rig_err;
const struct log_name rig_metrics0 = {"abcdefghijklmnop", 1, 0, STREAM_METRICS};
const struct log_name rig_metrics4 = {"abcdefghijklmnop", 1, 4, STREAM_METRICS};
const struct log_name rig_out0 = {"abcdefghijklmnop", 1, 0, STREAM_STDOUT};

static char folder[64];
static struct worker *worker;

void metrics_rig_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/gpuctl-metrics-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    worker = worker_open(&rig_err);
    rig_logs = logs_open(folder, folder, LIMIT_STREAM_BYTES, worker, &rig_err);
    ck_assert_ptr_nonnull(rig_logs);
}

void metrics_rig_close(void)
{
    worker_close(worker);
    logs_close(rig_logs);
    ck_assert(file_remove_tree(folder, &rig_err));
}

void rig_store(const struct log_name *name, const char *bytes, size_t length)
{
    int64_t size, received, durable;
    ck_assert(logs_append(rig_logs, name, 0, NULL, 0, &size, &durable, &rig_err));
    ck_assert_msg(logs_append(rig_logs, name, size, bytes, length, &received, &durable, &rig_err), "%s",
                  rig_err.text);
    ck_assert_int_eq(received, size + (int64_t)length);
}

void rig_store_text(const struct log_name *name, const char *text)
{
    rig_store(name, text, strlen(text));
}

struct log_reader *rig_reader(const char *id)
{
    struct log_reader *reader = log_reader_open(rig_logs, rig_out0.job_id, 1, -1, STREAM_METRICS,
                                                id != NULL && id[0] != '\0' ? id : NULL, &rig_err);
    ck_assert_msg(reader != NULL, "%s", rig_err.text);
    return reader;
}
