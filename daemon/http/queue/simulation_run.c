/* SPDX-License-Identifier: Apache-2.0 */
/* Replays jobs that have ended under other policies. It promises bounds: the newest LIMIT_SIMULATION_JOBS
 * jobs, LIMIT_SIMULATION_NODES nodes, and the time of the run; the answer says what was left out. Jobs are
 * read in short pieces, so that the log of the database can be shortened between them. What counts of the
 * history, and what the figures mean, is daemon/simulate's. */
#include "daemon/http/queue/simulation_run.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/http/api/job_lookup.h"
#include "daemon/simulate/figures.h"
#include "daemon/simulate/history.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

/* What a replay is made of. */
struct past {
    struct trace trace;
    struct fleet fleet; /* where the question names none */
    bool more;          /* there are older jobs that fit the question */
};

static bool goes_on(void *closure)
{
    const struct simulation_run *run = closure;
    return !atomic_load(&run->stop) && clock_boot_ms() < run->until_ms;
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

static uint32_t ended_states(void)
{
    uint32_t states = 0;
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        states |= job_state_terminal(state) ? 1u << state : 0;
    }
    return states;
}

/* Reads as many jobs as one piece has, and moves the filter behind the last of them. *ret_full: there may be
 * more before the end of the filter. */
static bool read_rows(struct reader *reader, struct job_filter *filter, struct past *past, bool *ret_full,
                      struct err *err)
{
    autorows struct rows rows = reader_jobs(reader, filter, err);
    struct job_record job;
    int64_t count = 0;
    while (rows_job(&rows, &job)) {
        if (past->trace.count == LIMIT_SIMULATION_JOBS) {
            past->more = true;
            break;
        }
        struct job_view view;
        job_view_fill(&view, &job.birth, &job.life, &job.array);
        history_add_job(&past->trace, &view);
        filter->before_key = job.birth.key;
        count++;
    }
    *ret_full = count == filter->limit;
    return !rows.failed;
}

static bool read_jobs(struct simulation_run *run, struct reader *reader, struct past *past)
{
    const struct simulation_question *question = &run->question;
    struct job_filter filter = {.owner = question->owner,
                                .states = ended_states(),
                                .since_ms = question->span_ms > 0 ? run->wall_ms - question->span_ms : 0,
                                .limit = LIMIT_SCAN_ROWS};
    bool over = false;
    while (!over && !past->more && goes_on(run)) {
        bool full = false;
        filter.behind_key = 0;
        if (!reader_jobs_bound(reader, &filter, &over, &run->err)) {
            return false;
        }
        do {
            if (!read_rows(reader, &filter, past, &full, &run->err)) {
                return false;
            }
        } while (full && !past->more && goes_on(run));
        over = over && !full;
        filter.before_key = filter.behind_key + 1;
    }
    past->more = past->more || !over; /* its time was over before */
    history_end(&past->trace);
    return true;
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

bool simulation_fleet_fits(const struct fleet *fleet, struct err *err)
{
    bool fits = fleet_nodes(fleet) <= LIMIT_SIMULATION_NODES && fleet_gpus(fleet) <= LIMIT_SIMULATION_GPUS;
    return fits || err_field(err, ERR_FIELD, "nodes", "gpuctl simulate --history has no such limit",
                             "a simulation on the controller has at most %d nodes and %d GPUs",
                             LIMIT_SIMULATION_NODES, LIMIT_SIMULATION_GPUS);
}

static void add_node(const struct node_row *row, struct fleet *fleet)
{
    if (history_takes_work(row->state)) {
        autojson json_t *devices = json_parse(row->devices, strlen(row->devices), NULL);
        history_add_node(fleet, devices);
    }
}

static bool read_nodes(struct simulation_run *run, struct reader *reader, struct past *past)
{
    autofree char *last = xstrdup("");
    for (int64_t count = LIMIT_LIST_ROWS; count == LIMIT_LIST_ROWS && goes_on(run);) {
        autorows struct rows rows = reader_nodes(reader, last, LIMIT_LIST_ROWS, &run->err);
        autofree char *newest = NULL;
        struct node_row row;
        struct node_used used;
        for (count = 0; rows_node(&rows, &row, &used); count++) {
            add_node(&row, &past->fleet);
            free(newest);
            newest = xstrdup(row.name);
        }
        if (rows.failed) {
            return false;
        }
        if (newest != NULL) {
            free(last);
            last = give(newest);
        }
    }
    return true;
}

static bool choose_nodes(struct simulation_run *run, struct reader *reader, struct past *past)
{
    if (run->question.fleet.count > 0) {
        return true;
    }
    if (!read_nodes(run, reader, past) || !simulation_fleet_fits(&past->fleet, &run->err)) {
        return false;
    }
    return past->fleet.count > 0 ||
           err_field(&run->err, ERR_FIELD, "nodes", "name the nodes, for example 64x8",
                     "the controller has no node with GPUs that takes work");
}

static bool read_past(struct simulation_run *run, struct past *past)
{
    struct reader *reader = reader_open(run->store_path, &run->err);
    bool good = reader != NULL && read_jobs(run, reader, past) && choose_nodes(run, reader, past);
    reader_close(reader);
    return good;
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static const struct fleet *fleet_of(const struct simulation_run *run, const struct past *past)
{
    return run->question.fleet.count > 0 ? &run->question.fleet : &past->fleet;
}

/* false: it was ended before. */
static bool replay_one(struct simulation_run *run, const struct past *past,
                       const struct replay_options *options, char **refusal)
{
    struct text *out = &run->json;
    struct outcome outcome;
    if (!replay(&past->trace, fleet_of(run, past), options, &outcome)) {
        return false;
    }
    struct figures figures = figures_of(&past->trace, fleet_of(run, past), &outcome);
    autojson json_t *document = figures_json(&figures, options);
    autofree char *text = json_text(document);
    member_separate(out);
    text_append(out, text);
    if (*refusal == NULL) {
        *refusal = give(outcome.refusal);
    }
    figures_finish(&figures);
    outcome_finish(&outcome);
    return true;
}

static void write_results(struct simulation_run *run, const struct past *past)
{
    const struct simulation_question *question = &run->question;
    struct text *out = &run->json;
    autofree char *refusal = NULL;
    autotext struct text cut = {0};
    text_append(out, ",\"results\":[");
    text_append(&cut, "],\"cut\":[");
    for (size_t i = 0; i < question->policy_count; i++) {
        const struct replay_options options = {
            .policy = question->policies[i], .limits = question->limits, .goes_on = goes_on, .closure = run};
        bool whole = past->trace.count > 0 ? replay_one(run, past, &options, &refusal) : goes_on(run);
        if (!whole) {
            member_separate(&cut);
            text_printf(&cut, "\"%s\"", policy_text(options.policy));
        }
    }
    text_append(out, cut.bytes);
    member_write_text(out, "],\"refusal\":", refusal);
}

static void write_answer(struct simulation_run *run, const struct past *past)
{
    struct text *out = &run->json;
    const struct trace *trace = &past->trace;
    autotext struct text nodes = {0};
    fleet_write(fleet_of(run, past), &nodes);
    member_write_time(out, "{\"as_of\":", run->wall_ms);
    member_write_int(out, ",\"jobs\":", (int64_t)trace->count);
    member_write_int(out, ",\"not_run\":", (int64_t)trace->not_run);
    member_write_time(out, ",\"oldest_at\":", trace->count > 0 ? trace->jobs[0].submit_ms : 0);
    member_write_bool(out, ",\"more\":", past->more);
    member_write_text(out, ",\"nodes\":", nodes.bytes);
    write_results(run, past);
    text_append(out, "}");
}

void simulation_run(struct simulation_run *run)
{
    struct past past = {0};
    run->until_ms = clock_boot_ms() + run->limit_ms;
    run->ok = read_past(run, &past);
    if (run->ok) {
        write_answer(run, &past);
    }
    trace_finish(&past.trace);
    fleet_finish(&past.fleet);
}

void simulation_question_finish(struct simulation_question *question)
{
    fleet_finish(&question->fleet);
    free(question->owner);
}
