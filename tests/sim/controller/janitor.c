/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for old jobs as the product does, and asks the writer to remove them and the rest of their rows. Now
 * and then it asks for the removal of any job, as a person might: the controller has to refuse a live one.
 * The judge learns of each removal that was asked for, and of each that was acknowledged. */
#include "tests/sim/controller/janitor.h"

#include <stdio.h>
#include <string.h>

#include "daemon/retention/old_jobs.h"
#include "proto/base/text/text.h"
#include "tests/sim/controller/controller_parts.h"
#include "tests/sim/checks/judge.h"
#include "tests/sim/people.h"

/* One request to the writer. It lasts as long as the run: a controller that dies drops it unanswered. */
struct request {
    struct writer_request writer; /* first */
    struct sim *sim;
    int64_t keys[RETENTION_STEP_JOBS];
    char ids[RETENTION_STEP_JOBS][ID_LENGTH + 1];
    struct change changes[RETENTION_STEP_JOBS];
    size_t count;
};

static int render_nothing(const struct writer_request *request, const struct step *step, struct text *out)
{
    return 200;
}

static void answered(struct writer_request *writer)
{
    struct request *request = (struct request *)writer;
    bool refused = writer->status == 0 && writer->error.code == ERR_CONFLICT;
    for (size_t i = 0; i < request->count && writer->kind == WRITER_INPUT && !refused; i++) {
        judge_removed(request->sim, request->ids[i], writer->status == 200);
    }
}

static struct request *begin(struct sim *sim, enum writer_kind kind)
{
    struct request *request = world_keep(&sim->world, sizeof *request);
    request->sim = sim;
    request->writer.kind = kind;
    request->writer.render = render_nothing;
    request->writer.done = answered;
    request->writer.arrived_ms = controller_now(sim->controller);
    request->writer.input.wall_ms = world_wall_ms(&sim->world);
    return request;
}

static void ask(struct request *request)
{
    struct controller *controller = request->sim->controller;
    if (request->count > 0 && writer_ask(controller->writer, &request->writer)) {
        controller_asked(controller);
    }
}

static void add_job(struct request *request, const struct job_record *job)
{
    request->keys[request->count] = job->birth.key;
    snprintf(request->ids[request->count++], ID_LENGTH + 1, "%s", job->birth.id);
    judge_removal_asked(request->sim, job);
}

static void ask_removal(struct request *request)
{
    request->writer.input.kind = INPUT_REMOVE;
    request->writer.input.remove.keys = request->keys;
    request->writer.input.remove.count = request->count;
    ask(request);
}

/* What is old has ended: the row says so, too. */
static void add_old(struct request *request, const struct old_job *old)
{
    struct sim *sim = request->sim;
    struct err err;
    autorows struct rows rows = reader_job(sim->controller->reader, old->id, &err);
    struct job_record job;
    if (world_check(&sim->world, rows_job(&rows, &job) && job_state_terminal(job.life.state), "I3",
                    "job %s is to be removed as old, and has not ended", old->id)) {
        add_job(request, &job);
    }
}

static void remove_old(struct sim *sim)
{
    struct reader *reader = sim->controller->reader;
    struct world *world = &sim->world;
    const struct retention_rules rules = {.ages = {.jobs_ms = world_between(world, 1000, 900000)}};
    struct old_jobs old = {0};
    struct err err;
    while (!old.over) {
        bool ok = old_jobs_next(&old, reader, &rules, world_wall_ms(world), &err);
        world_check(world, ok, "I3", "old jobs cannot be read: %s", err.text);
        struct request *request = begin(sim, WRITER_INPUT);
        for (size_t i = 0; i < old.count; i++) {
            add_old(request, &old.items[i]);
        }
        ask_removal(request);
    }
}

/* Any of the newest jobs, whatever its state. */
static void remove_any(struct sim *sim)
{
    struct err err;
    const struct job_filter filter = {.limit = world_between(&sim->world, 1, 20)};
    struct request *request = begin(sim, WRITER_INPUT);
    autorows struct rows rows = reader_jobs(sim->controller->reader, &filter, &err);
    struct job_record job;
    while (rows_job(&rows, &job)) {
        request->count = 0;
        add_job(request, &job);
    }
    ask_removal(request);
}

static void finish_removals(struct sim *sim)
{
    struct err err;
    struct request *request = begin(sim, WRITER_RECORD);
    autorows struct rows rows = reader_removals(sim->controller->reader, RETENTION_STEP_JOBS, &err);
    struct removal_row row;
    while (rows_removal(&rows, &row)) {
        request->changes[request->count++] =
            (struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = row.job_key};
    }
    if (request->count < RETENTION_STEP_JOBS) {
        request->changes[request->count++] = (struct change){
            .kind = CHANGE_SHRINK, .pages = world_between(&sim->world, 1, RETENTION_STEP_PAGES)};
    }
    request->writer.records = request->changes;
    request->writer.record_count = request->count;
    ask(request);
}

static void round_due(void *closure)
{
    struct sim *sim = closure;
    struct world *world = &sim->world;
    if (controller_is_up(sim->controller)) {
        finish_removals(sim);
        if (world_of(world, 30)) {
            remove_any(sim);
        } else {
            remove_old(sim);
        }
    }
    world_in(world, world_between(world, 20000, 300000), round_due, sim, NULL);
}

void janitor_begin(struct sim *sim)
{
    world_in(&sim->world, world_between(&sim->world, 60000, 600000), round_due, sim, NULL);
}
