/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of jobs, which people bring along for simulations. */
#include <stdio.h>
#include <string.h>

#include "daemon/simulate/trace.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "tests/fuzz/fuzz.h"

static bool read_trace(const void *bytes, size_t size, struct trace *ret_trace, struct err *err)
{
    FILE *file = size > 0 ? fmemopen((void *)(uintptr_t)bytes, size, "r") : NULL;
    if (file == NULL) {
        return err_set(err, ERR_FIELD, "there is nothing to read");
    }
    bool taken = trace_read(file, "trace", ret_trace, err);
    fclose(file);
    return taken;
}

/* What is written of a trace is read again. */
bool fuzz_trace(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct trace trace, again;
    if (!read_trace(bytes, size, &trace, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    for (size_t i = 0; i < trace.count; i++) {
        const struct trace_job *job = &trace.jobs[i];
        FUZZ_MUST(job->gpus >= 1 && job->duration_ms >= 0 && job->limit_ms >= 0);
        FUZZ_MUST(job->priority >= -LIMIT_PRIORITY && job->priority <= LIMIT_PRIORITY);
        FUZZ_MUST(i == 0 || trace.jobs[i - 1].submit_ms <= job->submit_ms);
    }
    autotext struct text shown = {0};
    trace_write(&trace, &shown);
    if (trace.count > 0) {
        FUZZ_MUST(read_trace(shown.bytes, shown.length, &again, &err));
        FUZZ_MUST(again.count == trace.count);
        for (size_t i = 0; i < trace.count; i++) {
            FUZZ_MUST(again.jobs[i].gpus == trace.jobs[i].gpus);
        }
        trace_finish(&again);
    }
    bool any = trace.count > 0;
    trace_finish(&trace);
    return any;
}
