/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of `gpuctl run`: reads a stream of output and one of events, and heeds the person at the
 * keyboard. It promises the job's own exit code, and to wait for a controller that is away for a while. */
#include "client/cli/common/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/show/event.h"
#include "client/cli/show/output.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/feed.h"
#include "client/cli/common/jobs.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

struct follow {
    struct api *api;
    const char *id;
    bool quiet;
    bool cancels;  /* Ctrl-C cancels the job; else it leaves the job alone */
    bool to_start; /* until it runs: */
    bool runs;     /* as far as the events tell */
    struct feed *logs, *events;
    struct output *output;
    bool ranks_known;     /* whether lines get a prefix is decided */
    bool waiting;         /* for GPUs or for nodes to get ready, as far as the events tell */
    char *reason;         /* that was shown last, or NULL */
    int64_t reason_at_ms; /* when */
    int64_t ask_at_ms;    /* when to ask again why it waits */
    int64_t ended_at_ms;  /* when the output did; 0: it has not */
    int interrupts;       /* that were worked in */
};

static bool take_output(const struct sse_event *event, void *closure, struct err *err)
{
    return output_write_event(closure, event->data, event->data_length, err);
}

static bool flush_output(void *closure, struct err *err)
{
    return output_flush(closure, err);
}

bool follow_output(struct feed *feed, struct output *output, struct err *err)
{
    return feed_read(feed, take_output, flush_output, output, err);
}

bool follow_many_ranks(const struct job_view *job)
{
    return ranks_by_node(job) ? job->placement_count > 1 : job->gpus > 1;
}

bool follow_prefix(struct api *api, const char *id, bool retry, struct output *output, struct err *err)
{
    struct job_view job;
    if (!ranks_get_job(api, id, retry, &job, err)) {
        return false;
    }
    if (follow_many_ranks(&job)) {
        output_prefix(output);
    }
    job_view_finish(&job);
    return true;
}

/* With retry the controller may be away just now: a read is safe to repeat. */
static bool get_job(struct follow *follow, bool retry, struct job_view *ret_job, struct err *err)
{
    return ranks_get_job(follow->api, follow->id, retry, ret_job, err);
}

/* --- notes --- */

bool follow_is_alike(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    while (*a != '\0' && *b != '\0') {
        size_t figures = strspn(a, digits);
        if ((figures > 0) != (strspn(b, digits) > 0) || (figures == 0 && *a != *b)) {
            return false;
        }
        a += figures > 0 ? figures : 1;
        b += figures > 0 ? strspn(b, digits) : 1;
    }
    return *a == *b;
}

/* Nodes that get ready tell how long they have been at it: that alone is no news, but a sign of life. */
static bool is_news(const struct follow *follow, const struct job_view *job)
{
    if (follow->reason == NULL) {
        return true;
    }
    bool alike = job->state == JOB_STAGING ? follow_is_alike(follow->reason, job->reason)
                                           : strcmp(follow->reason, job->reason) == 0;
    bool repeat =
        job->state == JOB_STAGING && clock_boot_ms() >= follow->reason_at_ms + CLIENT_SAME_REASON_MS;
    return !alike || repeat;
}

bool follow_waits(enum job_state state)
{
    return state == JOB_QUEUED || state == JOB_HELD || state == JOB_BLOCKED || state == JOB_STAGING;
}

static void note_reason(struct follow *follow, const struct job_view *job)
{
    if (!follow_waits(job->state) || job->reason == NULL || !is_news(follow, job)) {
        return;
    }
    free(follow->reason);
    follow->reason = xstrdup(job->reason);
    follow->reason_at_ms = clock_boot_ms();
    if (!follow->quiet) {
        print_note("job %s waits: %s", follow->id, job->reason);
    }
}

/* Asks now and then why the job waits. An answer that does not come is no failure here: the streams notice.
 */
static void ask_reason(struct follow *follow)
{
    if (!follow->waiting || follow->ended_at_ms != 0 || clock_boot_ms() < follow->ask_at_ms) {
        return;
    }
    follow->ask_at_ms = clock_boot_ms() + CLIENT_REASON_MS;
    struct job_view job;
    struct err ignored;
    if (get_job(follow, false, &job, &ignored)) {
        note_reason(follow, &job);
        job_view_finish(&job);
    }
}

static void note_event(struct follow *follow, const struct event_view *event)
{
    autotext struct text detail = {0};
    event_detail(event->detail, &detail);
    bool told_before = event->kind == EVENT_SUBMITTED || event->kind == EVENT_STARTED;
    bool told_at_the_end = event_is_last(event->kind);
    if (!follow->quiet && !told_before && !told_at_the_end) {
        print_note("job %s: %s%s%s", follow->id, event_kind_text(event->kind), detail.length > 0 ? ": " : "",
                   detail.length > 0 ? detail.bytes : "");
    }
}

static void note_end(const struct follow *follow, const struct job_view *job)
{
    char span[32];
    print_span(job->started_ms, job->ended_ms, span);
    const char *after = job->started_ms != 0 ? " after " : "";
    bool news =
        job->state == JOB_FAILED && !cause_user_fault(job->cause); /* the exit code alone would mislead */
    if (!follow->quiet || news) {
        print_note("job %s %s%s%s%s%s", follow->id, job_state_text(job->state), after,
                   job->started_ms != 0 ? span : "", job->reason != NULL ? ": " : "",
                   job->reason != NULL ? job->reason : "");
    }
}

/* Where the job tracked, if it did. An answer that does not come is no failure: the job has ended. */
static void note_run(const struct follow *follow)
{
    struct err ignored;
    autojson json_t *runs = follow->quiet ? NULL : runs_get(follow->api, follow->id, &ignored);
    autotext struct text said = {0};
    if (json_array_size(runs) > 0) {
        runs_say(json_array_get(runs, 0), &said);
        print_note("%s", said.bytes);
    }
}

/* --- the two streams --- */

static bool drain_logs(struct follow *follow, struct err *err)
{
    struct sse_event event;
    while (feed_next(follow->logs, &event)) {
        if ((!follow->ranks_known && !follow_prefix(follow->api, follow->id, true, follow->output, err)) ||
            !output_write_event(follow->output, event.data, event.data_length, err)) {
            return false;
        }
        follow->ranks_known = true;
    }
    if (feed_ended(follow->logs) && follow->ended_at_ms == 0) {
        follow->ended_at_ms = clock_boot_ms();
    }
    return output_flush(follow->output, err);
}

/* Whether a job that runs does so still after this event. */
static bool goes_on(enum event_kind kind)
{
    return kind == EVENT_CHANGED || kind == EVENT_IDLE || kind == EVENT_BUSY || kind == EVENT_WARNED;
}

static bool drain_events(struct follow *follow, struct err *err)
{
    struct sse_event event;
    while (feed_next(follow->events, &event)) {
        json_t *json = json_parse(event.data, event.data_length, err);
        struct event_view view;
        if (json == NULL || !event_view_decode(json, &view, err)) {
            return false;
        }
        follow->runs = view.kind == EVENT_RUNNING || (follow->runs && goes_on(view.kind));
        follow->waiting = view.kind == EVENT_SUBMITTED || view.kind == EVENT_REQUEUED ||
                          view.kind == EVENT_STAGING || view.kind == EVENT_STAGED;
        note_event(follow, &view);
        event_view_finish(&view);
    }
    return true;
}

/* --- the person --- */

static bool ask_cancel(struct follow *follow, struct err *err)
{
    print_note("canceling job %s; Ctrl-C again leaves at once", follow->id);
    autojson json_t *reply = api_ask(follow->api, "POST", NULL, err, "/v1/jobs/%s/cancel", follow->id);
    return reply != NULL || err->code == ERR_CONFLICT; /* it has just ended otherwise */
}

/* *ret_left is set when the person does not want to wait any more. */
static bool heed_interrupts(struct follow *follow, bool *ret_left, struct err *err)
{
    if (!follow->cancels) {
        *ret_left = api_interrupts(follow->api) > 0;
        return true;
    }
    if (follow->interrupts == 0 && api_interrupts(follow->api) > 0) {
        follow->interrupts = 1;
        if (!ask_cancel(follow, err) && api_interrupts(follow->api) < 2) {
            return false;
        }
    }
    *ret_left = api_interrupts(follow->api) > 1;
    return true;
}

/* --- the loop --- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t patience_ms(const struct follow *follow)
{
    int64_t patience = smaller(feed_patience_ms(follow->logs), feed_patience_ms(follow->events));
    if (follow->waiting) {
        patience = smaller(patience, follow->ask_at_ms - clock_boot_ms());
    }
    if (follow->ended_at_ms != 0) {
        patience = smaller(patience, follow->ended_at_ms + CLIENT_FOLLOW_END_MS - clock_boot_ms());
    }
    return patience > 0 ? patience : 0;
}

/* The events may lag behind the output a little, and are waited for only as long. */
static bool is_over(const struct follow *follow)
{
    return (follow->to_start && follow->runs) ||
           (follow->ended_at_ms != 0 &&
            (feed_ended(follow->events) || clock_boot_ms() >= follow->ended_at_ms + CLIENT_FOLLOW_END_MS));
}

static bool tend(struct follow *follow, struct err *err)
{
    return feed_tend(follow->logs, err) && feed_tend(follow->events, err);
}

static bool follow_to_end(struct follow *follow, bool *ret_left, struct err *err)
{
    *ret_left = false;
    while (!is_over(follow) && !*ret_left) {
        api_turn(follow->api, patience_ms(follow));
        if (!drain_events(follow, err) || !drain_logs(follow, err) || !tend(follow, err) ||
            !heed_interrupts(follow, ret_left, err)) {
            return false;
        }
        ask_reason(follow);
    }
    return true;
}

/* Shows the end of the job. */
static bool conclude(struct follow *follow, int *ret_exit, struct err *err)
{
    struct job_view job;
    if (!get_job(follow, true, &job, err)) {
        return false;
    }
    note_end(follow, &job);
    note_run(follow);
    *ret_exit = (int)job.exit_code;
    job_view_finish(&job);
    return true;
}

/* Follows the job as the caller has said, and shows its end where it comes to that. */
static bool follow_it(struct follow *follow, const struct job_view *job, int *ret_exit, struct err *err)
{
    autofree char *logs_path = xprintf("/v1/jobs/%s/logs", job->id);
    autofree char *events_path = xprintf("/v1/jobs/%s/events", job->id);
    follow->id = job->id;
    follow->waiting = follow_waits(job->state);
    follow->ranks_known = job->gpus == 1;
    follow->ask_at_ms = clock_boot_ms() + (job->reason != NULL ? CLIENT_REASON_MS : 0);
    follow->output = output_create(stdout, stderr, -1);
    follow->logs = feed_create(follow->api, logs_path, NULL);
    follow->events = feed_create(follow->api, events_path, NULL);
    note_reason(follow, job);
    bool left = false;
    bool good = follow_to_end(follow, &left, err);
    feed_destroy(follow->logs);
    feed_destroy(follow->events);
    output_destroy(follow->output);
    if (good && left) {
        print_note("left job %s, which %s", job->id, follow->cancels ? "ends by itself" : "goes on");
        *ret_exit = EXIT_LEFT;
    } else if (good && !(follow->to_start && follow->runs)) {
        good = conclude(follow, ret_exit, err);
    }
    free(follow->reason);
    return good;
}

bool follow_job(struct api *api, const struct job_view *job, bool quiet, int *ret_exit, struct err *err)
{
    struct follow follow = {.api = api, .quiet = quiet, .cancels = true};
    return follow_it(&follow, job, ret_exit, err);
}

bool follow_attach(struct api *api, const struct job_view *job, bool quiet, int *ret_exit, struct err *err)
{
    struct follow follow = {.api = api, .quiet = quiet};
    return follow_it(&follow, job, ret_exit, err);
}

bool follow_start(struct api *api, const struct job_view *job, bool quiet, bool cancels, bool *ret_runs,
                  int *ret_exit, struct err *err)
{
    struct follow follow = {.api = api, .quiet = quiet, .cancels = cancels, .to_start = true};
    bool good = follow_it(&follow, job, ret_exit, err);
    *ret_runs = good && follow.runs;
    return good;
}
