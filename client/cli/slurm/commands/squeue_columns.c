/* SPDX-License-Identifier: Apache-2.0 */
/* What each letter of squeue's format shows of a job. */
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/job_rows.h"
#include "client/cli/slurm/commands/job_states.h"
#include "client/cli/slurm/commands/node_list.h"
#include "client/cli/slurm/commands/squeue.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"

static const json_t *job_of(const json_t *row)
{
    return json_object_get(row, "job");
}

static const json_t *spec_of(const json_t *row)
{
    return json_object_get(job_of(row), "spec");
}

static int64_t number_of(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static bool is_pending(const json_t *row)
{
    return slurm_state_of(job_of(row)) == SLURM_PENDING;
}

/* --- ids and names --- */

/* Of a task its own. */
static void show_own_id(const json_t *row, struct text *out)
{
    text_append(out, print_text_of(job_of(row), "id"));
}

static void show_array_id(const json_t *row, struct text *out)
{
    const char *array = json_string_of(job_of(row), "array_id");
    text_append(out, array != NULL ? array : print_text_of(job_of(row), "id"));
}

static void show_task(const json_t *row, struct text *out)
{
    const json_t *task = json_object_get(job_of(row), "task");
    const char *tasks = json_string_of(row, "tasks");
    if (json_is_integer(task)) {
        text_append_int(out, json_integer_value(task));
    } else {
        text_append(out, tasks != NULL ? tasks : "N/A");
    }
}

static void show_partition(const json_t *row, struct text *out)
{
    text_append(out, job_rows_partition(row));
}

static void show_name(const json_t *row, struct text *out)
{
    const char *name = json_string_of(job_of(row), "name");
    const char *program = json_string_of(job_of(row), "program");
    text_append(out, name != NULL ? name : program != NULL ? program : "(null)");
}

static void show_user(const json_t *row, struct text *out)
{
    text_append(out, print_text_of(job_of(row), "owner"));
}

static void show_account(const json_t *row, struct text *out)
{
    text_append(out, print_text_of(job_of(row), "project"));
}

/* --- states --- */

static void show_code(const json_t *row, struct text *out)
{
    text_append(out, slurm_state_code(slurm_state_of(job_of(row))));
}

static void show_state(const json_t *row, struct text *out)
{
    text_append(out, slurm_state_text(slurm_state_of(job_of(row))));
}

static void show_reason(const json_t *row, struct text *out)
{
    text_append(out, slurm_reason_of(job_of(row), json_object_get(row, "queued")));
}

/* --- nodes --- */

static void show_nodes(const json_t *row, struct text *out)
{
    const json_t *node;
    size_t i;
    json_t *names = json_array();
    json_array_foreach (json_object_get(job_of(row), "nodes"), i, node) {
        json_array_append_new(names, json_string(print_text_of(node, "node")));
    }
    node_list_append(names, out);
    json_decref(names);
}

static void show_nodes_or_reason(const json_t *row, struct text *out)
{
    enum slurm_state state = slurm_state_of(job_of(row));
    if (state == SLURM_RUNNING || state == SLURM_COMPLETING || state == SLURM_COMPLETED) {
        show_nodes(row, out);
    } else {
        text_append(out, "(");
        show_reason(row, out);
        text_append(out, ")");
    }
}

/* Those that it has; else those that it asks for, one at least. */
static int64_t nodes_of(const json_t *row)
{
    int64_t placed = (int64_t)json_array_size(json_object_get(job_of(row), "nodes"));
    int64_t asked = number_of(spec_of(row), "nodes");
    return placed > 0 && !is_pending(row) ? placed : asked > 0 ? asked : 1;
}

static void show_node_count(const json_t *row, struct text *out)
{
    text_append_int(out, nodes_of(row));
}

/* What it holds; else what it asks for; where neither is known, one for each rank. */
static void show_cpus(const json_t *row, struct text *out)
{
    double held = 0;
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(job_of(row), "nodes"), i, node) {
        held += json_number_value(json_object_get(node, "cpus"));
    }
    double asked = json_number_value(json_object_get(spec_of(row), "cpus"));
    double cpus = held > 0 && !is_pending(row) ? held : asked;
    int64_t gpus = number_of(job_of(row), "gpus");
    int64_t whole = (int64_t)cpus + ((double)(int64_t)cpus < cpus);
    text_append_int(out, whole > 0 ? whole : gpus > 0 ? gpus : 1);
}

/* "gres/gpu:A10:4" of each node; of a job whose nodes are not known to have equal shares, of all. */
static void show_gpus(const json_t *row, struct text *out)
{
    int64_t gpus = number_of(job_of(row), "gpus"), nodes = nodes_of(row);
    const char *type = json_string_of(job_of(row), "gpu_type");
    if (gpus == 0) {
        text_append(out, "N/A");
        return;
    }
    text_printf(out, "gres/gpu:%s%s%lld", type != NULL ? type : "", type != NULL ? ":" : "",
                (long long)(gpus % nodes == 0 ? gpus / nodes : gpus));
}

/* --- times --- */

static int64_t used_s(const json_t *row)
{
    int64_t start_ms = print_time_of(job_of(row), "started_at");
    int64_t end_ms = print_time_of(job_of(row), "ended_at");
    int64_t used_ms = (end_ms != 0 ? end_ms : clock_wall_ms()) - start_ms;
    return start_ms != 0 && !is_pending(row) && used_ms > 0 ? used_ms / 1000 : 0;
}

/* 0: none */
static int64_t limit_s(const json_t *row)
{
    return (int64_t)json_number_value(json_object_get(job_of(row), "time_limit_s"));
}

static void show_used(const json_t *row, struct text *out)
{
    format_span(used_s(row), false, out);
}

static void show_limit(const json_t *row, struct text *out)
{
    if (limit_s(row) == 0) {
        text_append(out, "UNLIMITED");
    } else {
        format_span(limit_s(row), false, out);
    }
}

static void show_left(const json_t *row, struct text *out)
{
    int64_t left = limit_s(row) - used_s(row);
    if (limit_s(row) == 0) {
        text_append(out, "UNLIMITED");
    } else {
        format_span(left > 0 ? left : 0, false, out);
    }
}

/* Of one that waits, when it is expected to. */
static void show_start(const json_t *row, struct text *out)
{
    const json_t *expected = json_object_get(json_object_get(row, "queued"), "start");
    format_moment(is_pending(row) ? print_time_of(expected, "at") : print_time_of(job_of(row), "started_at"),
                  out);
}

static void show_end(const json_t *row, struct text *out)
{
    format_moment(print_time_of(job_of(row), "ended_at"), out);
}

static void show_submitted(const json_t *row, struct text *out)
{
    format_moment(print_time_of(job_of(row), "created_at"), out);
}

/* --- the rest --- */

static void show_priority(const json_t *row, struct text *out)
{
    text_append_int(out, number_of(job_of(row), "priority"));
}

/* Of a batch script, where it runs: a word of the command that starts it. */
static void show_directory(const json_t *row, struct text *out)
{
    const json_t *command = json_object_get(spec_of(row), "command"), *word;
    const char *workdir = json_string_of(spec_of(row), "workdir");
    const char *name = "directory=";
    size_t i;
    json_array_foreach (command, i, word) {
        const char *text = json_string_value(word);
        if (workdir == NULL && text != NULL && strncmp(text, name, strlen(name)) == 0) {
            workdir = text + strlen(name);
        }
    }
    text_append(out, workdir != NULL ? workdir : "(null)");
}

const struct format_column squeue_columns[] = {
    {'i', "JOBID", job_rows_show_id},
    {'A', "JOBID", show_own_id},
    {'F', "ARRAY_JOB_ID", show_array_id},
    {'K', "ARRAY_TASK_ID", show_task},
    {'P', "PARTITION", show_partition},
    {'j', "NAME", show_name},
    {'u', "USER", show_user},
    {'a', "ACCOUNT", show_account},
    {'t', "ST", show_code},
    {'T', "STATE", show_state},
    {'M', "TIME", show_used},
    {'l', "TIME_LIMIT", show_limit},
    {'L', "TIME_LEFT", show_left},
    {'D', "NODES", show_node_count},
    {'C', "CPUS", show_cpus},
    {'R', "NODELIST(REASON)", show_nodes_or_reason},
    {'N', "NODELIST", show_nodes},
    {'r', "REASON", show_reason},
    {'b', "TRES_PER_NODE", show_gpus},
    {'Q', "PRIORITY", show_priority},
    {'S', "START_TIME", show_start},
    {'e', "END_TIME", show_end},
    {'V', "SUBMIT_TIME", show_submitted},
    {'Z', "WORK_DIR", show_directory},
    {.code = '\0'},
};
