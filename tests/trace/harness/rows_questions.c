/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of the rows. */
#include "tests/trace/harness/rows.h"

#include <assert.h>
#include <string.h>

#include "proto/base/text/text.h"
#include "tests/trace/harness/rows_tables.h"

int64_t rows_next_key(const struct rows *rows)
{
    return (int64_t)rows->job_count + 1;
}

static const struct job_rows *find(const struct rows *rows, const char *id)
{
    for (size_t i = rows->job_count; i > 0; i--) {
        if (!rows->jobs[i - 1].removed && strcmp(rows->jobs[i - 1].birth.id, id) == 0) {
            return &rows->jobs[i - 1];
        }
    }
    return NULL;
}

const struct job_life *rows_job(const struct rows *rows, const char *id)
{
    const struct job_rows *job = find(rows, id);
    return job != NULL ? &job->life : NULL;
}

const struct array_row *rows_array(const struct rows *rows, const char *id)
{
    const struct job_rows *job = find(rows, id);
    return job != NULL ? &job->array : NULL;
}

const char *rows_job_id(const struct rows *rows, int64_t key)
{
    assert(key >= 1 && (size_t)key <= rows->job_count);
    return rows->jobs[key - 1].birth.id;
}

int64_t rows_key(const struct rows *rows, const char *id)
{
    const struct job_rows *job = find(rows, id);
    return job != NULL ? job->birth.key : 0;
}

uint64_t rows_attempt_id(const struct rows *rows, const char *id)
{
    const struct job_rows *job = find(rows, id);
    return job != NULL ? job->attempt_id : 0;
}

const struct attempt_row *rows_attempt(const struct rows *rows, uint64_t attempt_id)
{
    const struct attempt_rows *attempt = rows_attempt_at(rows, attempt_id);
    return attempt != NULL ? &attempt->row : NULL;
}

const struct node_row *rows_node(const struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->node_count; i++) {
        if (strcmp(rows->nodes[i].name, name) == 0) {
            return &rows->nodes[i];
        }
    }
    return NULL;
}

size_t rows_window_count(const struct rows *rows)
{
    return rows->window_count;
}

size_t rows_usage_count(const struct rows *rows)
{
    return rows->ledger.usage_count;
}

void rows_history(const struct rows *rows, const char *id, struct text *out)
{
    const struct job_rows *job = find(rows, id);
    assert(job != NULL);
    for (int64_t i = 0; i < job->event_count; i++) {
        text_printf(out, "%s%s", i > 0 ? " " : "", event_kind_text(job->events[i]));
    }
}

size_t rows_rank_count(const struct rows *rows, uint64_t attempt_id)
{
    const struct attempt_rows *attempt = rows_attempt_at(rows, attempt_id);
    return attempt != NULL ? attempt->rank_count : 0;
}

size_t rows_result_count(const struct rows *rows, uint64_t attempt_id, enum result_kind kind)
{
    const struct attempt_rows *attempt = rows_attempt_at(rows, attempt_id);
    return attempt != NULL ? attempt->result_counts[kind] : 0;
}
