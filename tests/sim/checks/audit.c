/* SPDX-License-Identifier: Apache-2.0 */
/* The audit: compares every row of the store that people can read with their submissions and the truth. It
 * looks at all jobs, with all their events, attempts and results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "tests/unit/store/each_row.h"
#include "tests/sim/controller/controller.h"
#include "tests/sim/node/host.h"
#include "tests/sim/checks/judge_parts.h"
#include "tests/sim/people.h"

#define CHECK(...) world_check(&auditing->sim->world, __VA_ARGS__)

/* The job under audit, and sums. */
struct auditing {
    struct sim *sim;
    struct reader *reader;
    size_t jobs;
    const char *id;
    struct job_life life;
    const struct submission *submission;
    int64_t last_seq, last_at_ms, terminals;
    uint32_t states; /* the states that the job may be in after the last event */
    int64_t attempts, user_failures, infra_failures;
    uint64_t newest_attempt_id, last_attempt_id;
    struct attempt_row newest;
    int64_t results;
};

/* --- events --------------------------------------------------------------------------------------------- */

/* Sets of states, a bit for each. */
#define IS(state) (1U << JOB_##state)
#define WAITS     (IS(QUEUED) | IS(STAGING))
#define HAS_GPUS  (IS(PLACED) | IS(RUNNING))
#define LIVES     (WAITS | HAS_GPUS | IS(HELD) | IS(BLOCKED))

/* The published graph of states: from which states an event is allowed, and to which it leads; 0: the state
 * stays. */
static const struct {
    uint32_t from, to;
} edges[EVENT_KIND_COUNT] = {
    [EVENT_HELD] = {WAITS | IS(BLOCKED), IS(HELD)},
    [EVENT_RELEASED] = {IS(HELD), IS(QUEUED) | IS(BLOCKED)},
    [EVENT_BLOCKED] = {IS(QUEUED), IS(BLOCKED)},
    [EVENT_READY] = {IS(BLOCKED), IS(QUEUED)},
    [EVENT_CHANGED] = {LIVES, 0},
    [EVENT_STAGING] = {IS(QUEUED), IS(STAGING)},
    [EVENT_STAGED] = {IS(STAGING), IS(QUEUED)},
    [EVENT_PLACED] = {WAITS, IS(PLACED)},
    [EVENT_STARTED] = {IS(PLACED), 0},
    [EVENT_RUNNING] = {IS(PLACED), IS(RUNNING)},
    [EVENT_WARNED] = {HAS_GPUS, 0},
    [EVENT_KEPT] = {HAS_GPUS, 0},
    [EVENT_CANCEL_ASKED] = {LIVES, 0},
    [EVENT_STOPPING] = {HAS_GPUS, 0},
    [EVENT_REQUEUED] = {HAS_GPUS | IS(STAGING), IS(QUEUED)},
    [EVENT_LOGS_CUT] = {LIVES, 0},
    [EVENT_SUCCEEDED] = {IS(RUNNING), IS(SUCCEEDED)},
    [EVENT_FAILED] = {WAITS | HAS_GPUS, IS(FAILED)},
    [EVENT_CANCELED] = {LIVES, IS(CANCELED)},
    [EVENT_TIMED_OUT] = {HAS_GPUS, IS(TIMED_OUT)},
};

/* Computes the states of the job after the event; the first event is its submission. */
static void dependency_edge(struct auditing *auditing, const struct event_row *row)
{
    if (row->seq == 1) {
        CHECK(row->kind == EVENT_SUBMITTED, "I9", "job %s begins with %s", auditing->id,
              event_kind_text(row->kind));
        auditing->states = IS(QUEUED);
        return;
    }
    CHECK((auditing->states & edges[row->kind].from) != 0, "I9",
          "event %lld of job %s, %s, has no edge there", (long long)row->seq, auditing->id,
          event_kind_text(row->kind));
    auditing->states =
        edges[row->kind].to != 0 ? edges[row->kind].to : auditing->states & edges[row->kind].from;
}

static bool ends_job(enum event_kind kind)
{
    return kind == EVENT_SUCCEEDED || kind == EVENT_FAILED || kind == EVENT_CANCELED ||
           kind == EVENT_TIMED_OUT;
}

static bool audit_event(const struct event_row *row, void *closure)
{
    struct auditing *auditing = closure;
    CHECK(row->seq == auditing->last_seq + 1, "I9, I18", "job %s has event %lld after %lld", auditing->id,
          (long long)row->seq, (long long)auditing->last_seq);
    CHECK(row->at_ms >= auditing->last_at_ms, "I20",
          "event %lld of job %s is %lld ms older than the one before", (long long)row->seq, auditing->id,
          (long long)(auditing->last_at_ms - row->at_ms));
    CHECK(auditing->terminals == 0, "I10", "job %s has event %lld after its end", auditing->id,
          (long long)row->seq);
    dependency_edge(auditing, row);
    auditing->terminals += ends_job(row->kind);
    auditing->last_seq = row->seq;
    auditing->last_at_ms = row->at_ms;
    return true;
}

static void audit_events(struct auditing *auditing)
{
    struct err err;
    int64_t key = auditing->life.key;
    auditing->last_seq = auditing->last_at_ms = auditing->terminals = 0;
    bool ok = each_event(reader_events(auditing->reader, key, 0, 1000000, &err), audit_event, auditing);
    CHECK(ok, "I3", "the events of job %s cannot be read: %s", auditing->id, err.text);
    CHECK(auditing->last_seq == auditing->life.seq, "I18", "job %s is at seq %lld and has %lld events",
          auditing->id, (long long)auditing->life.seq, (long long)auditing->last_seq);
    CHECK((auditing->states & 1U << auditing->life.state) != 0, "I9",
          "job %s is %s, and its events lead elsewhere", auditing->id, job_state_text(auditing->life.state));
    CHECK(auditing->terminals == job_state_terminal(auditing->life.state), "I10",
          "job %s is %s and has %lld ends", auditing->id, job_state_text(auditing->life.state),
          (long long)auditing->terminals);
}

/* --- attempts ------------------------------------------------------------------------------------------- */

static void count_cause(struct auditing *auditing, const struct attempt_row *row)
{
    if (row->state != ATTEMPT_ENDED) {
        return;
    }
    switch (row->cause) {
    case CAUSE_RANK_FAILED:
    case CAUSE_OUT_OF_MEMORY:
    case CAUSE_EXEC_FAILED:
    case CAUSE_RESULT_MISSING:
        auditing->user_failures++;
        return;
    case CAUSE_PORT_TAKEN:
    case CAUSE_PREPARE_EXPIRED:
    case CAUSE_NODE_LOST:
    case CAUSE_SHIM_LOST:
        auditing->infra_failures++;
        return;
    case CAUSE_NONE:
    case CAUSE_CANCELED:
    case CAUSE_TIME_LIMIT:
    case CAUSE_DECLINED:
    case CAUSE_STAGE_FAILED:
    case CAUSE_PREEMPTED:
    case CAUSE_DEPENDENCY:
    case CAUSE_TASK_FAILED:
    case CAUSE_COUNT:
        return;
    }
}

/* The newest attempt comes first. */
static bool audit_attempt(const struct attempt_row *row, void *closure)
{
    struct auditing *auditing = closure;
    if (auditing->attempts++ == 0) {
        auditing->newest = *row;
        auditing->newest_attempt_id = row->attempt_id;
    } else {
        CHECK(row->attempt_id < auditing->last_attempt_id, "I5",
              "attempt %lld of job %s has no smaller epoch than the next", (long long)row->number,
              auditing->id);
        CHECK(row->state == ATTEMPT_ENDED, "I5", "attempt %lld of job %s lives beside a newer one",
              (long long)row->number, auditing->id);
    }
    CHECK(row->number == auditing->life.attempt - auditing->attempts + 1, "I5",
          "job %s has attempt %lld as its %lldth last", auditing->id, (long long)row->number,
          (long long)auditing->attempts);
    auditing->last_attempt_id = row->attempt_id;
    count_cause(auditing, row);
    return true;
}

/* Compares the outcome with the real exits of the ranks. */
static void audit_outcome(struct auditing *auditing)
{
    const struct submission *submission = auditing->submission;
    const struct job_life *life = &auditing->life;
    int64_t code = -1;
    bool by_us = false;
    for (int64_t rank = 0; life->state == JOB_SUCCEEDED && rank < submission->gpus; rank++) {
        bool ended = truth_exit(auditing->sim->truth, auditing->newest_attempt_id, rank, &code, &by_us);
        CHECK(ended && code == 0, "I12", "job %s is SUCCEEDED, and rank %lld %s %lld", auditing->id,
              (long long)rank, ended ? "exited with" : "did not exit: ", (long long)code);
    }
    if (life->state == JOB_FAILED && life->cause == CAUSE_RANK_FAILED) {
        bool ended =
            truth_exit(auditing->sim->truth, auditing->newest_attempt_id, life->failed_rank, &code, &by_us);
        CHECK(ended && code != 0 && code <= life->exit_code && !by_us, "I12",
              "job %s, exit code %lld, blames rank %lld, which %s %lld%s", auditing->id,
              (long long)life->exit_code, (long long)life->failed_rank,
              ended ? "exited with" : "never exited:", (long long)code, by_us ? ", killed by us" : "");
    }
}

static void audit_attempts(struct auditing *auditing)
{
    struct err err;
    const struct submission *submission = auditing->submission;
    auditing->attempts = auditing->user_failures = auditing->infra_failures = 0;
    bool ok = each_attempt(reader_attempts(auditing->reader, auditing->life.key, ALL_ATTEMPTS, &err),
                           audit_attempt, auditing);
    CHECK(ok, "I3", "the attempts of job %s cannot be read: %s", auditing->id, err.text);
    CHECK(auditing->attempts == auditing->life.attempt, "I5", "job %s is at attempt %lld and has %lld",
          auditing->id, (long long)auditing->life.attempt, (long long)auditing->attempts);
    CHECK(auditing->user_failures <= submission->retries + 1, "I13",
          "job %s failed %lld times, with %lld retries", auditing->id, (long long)auditing->user_failures,
          (long long)submission->retries);
    CHECK(auditing->infra_failures <= submission->infra_retries + 1, "I13",
          "job %s was failed by the infrastructure %lld times, with %lld retries", auditing->id,
          (long long)auditing->infra_failures, (long long)submission->infra_retries);
    audit_outcome(auditing);
}

/* --- results -------------------------------------------------------------------------------------------- */

static bool audit_result(const struct result_row *row, const void *bytes, void *closure)
{
    struct auditing *auditing = closure;
    char value[64];
    uint8_t digest[HASH_BYTES];
    snprintf(value, sizeof value, "%llu/%lld", (unsigned long long)row->attempt_id, (long long)row->rank);
    hash_bytes(value, strlen(value), digest);
    CHECK(row->hash != NULL && memcmp(row->hash, digest, sizeof digest) == 0, "I11",
          "the result of rank %lld of job %s is not what the rank wrote", (long long)row->rank, auditing->id);
    auditing->results++;
    return true;
}

static void audit_results(struct auditing *auditing)
{
    struct err err;
    if (auditing->attempts == 0) {
        return;
    }
    auditing->results = 0;
    bool ok = each_result(reader_results(auditing->reader, auditing->newest_attempt_id, -1, 100000, &err),
                          audit_result, auditing);
    CHECK(ok, "I11", "the results of job %s cannot be read: %s", auditing->id, err.text);
    bool due = auditing->submission->function && auditing->life.state == JOB_SUCCEEDED;
    CHECK(!due || auditing->results == auditing->submission->gpus, "I11",
          "job %s is SUCCEEDED with %lld results of %lld", auditing->id, (long long)auditing->results,
          (long long)auditing->submission->gpus);
    CHECK(auditing->submission->function || auditing->results == 0, "I11", "command job %s has results",
          auditing->id);
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

static void check_spec(const struct job_record *job, void *closure)
{
    struct auditing *auditing = closure;
    const char *body = auditing->submission->body;
    CHECK(job->birth.spec_length == strlen(body) && memcmp(job->birth.spec, body, strlen(body)) == 0, "I3",
          "the spec of job %s is not what was submitted", auditing->id);
}

static bool audit_job(const struct job_record *job, void *closure)
{
    struct auditing *auditing = closure;
    struct err err;
    bool found = false;
    auditing->jobs++;
    auditing->id = job->birth.id;
    auditing->life = job->life;
    auditing->submission = people_submission_of(auditing->sim->people, job->birth.id);
    if (!CHECK(auditing->submission != NULL, "I4", "nobody asked for job %s", job->birth.id)) {
        return false;
    }
    const struct submission *submission = auditing->submission;
    CHECK(!judge_seen(auditing->sim->judge, job->birth.id)->removed, "I3", "job %s was removed, and is back",
          job->birth.id);
    CHECK(submission->id[0] == '\0' || strcmp(submission->id, job->birth.id) == 0, "I4",
          "%s became job %s and job %s", submission->key, submission->id, job->birth.id);
    CHECK(submission->status == 0 || submission->status / 100 == 2, "I4",
          "%s was refused with %d, and is job %s", submission->key, submission->status, job->birth.id);
    CHECK(strcmp(job->birth.owner, submission->who) == 0, "I4", "job %s belongs to %s instead of %s",
          job->birth.id, job->birth.owner, submission->who);
    judge_saw(auditing->sim, auditing->sim->judge, job->birth.id, job->life.state, job->life.seq);
    one_job(reader_job_by_key(auditing->reader, job->life.key, &err), check_spec, auditing, &found);
    CHECK(found, "I3", "job %s is listed and cannot be read", job->birth.id);
    audit_events(auditing);
    audit_attempts(auditing);
    audit_results(auditing);
    return !auditing->sim->world.violated;
}

static void note_found(const struct job_record *job, void *closure)
{
}

/* Every acknowledged job exists, and no submission has become two jobs. */
static void audit_submissions(struct auditing *auditing)
{
    const struct submission *submissions;
    size_t count = people_submissions(auditing->sim->people, &submissions);
    for (size_t i = 0; i < count; i++) {
        struct err err;
        bool found = true;
        if (submissions[i].id[0] != '\0') {
            one_job(reader_job(auditing->reader, submissions[i].id, &err), note_found, NULL, &found);
        }
        const struct seen *seen = judge_seen(auditing->sim->judge, submissions[i].id);
        bool ended = seen->state == JOB_STATE_COUNT || job_state_terminal(seen->state) || seen->excused;
        CHECK(found || (seen->removal_asked && ended), "I3", "%s was acknowledged as job %s, which is lost",
              submissions[i].key, submissions[i].id);
    }
    CHECK(auditing->jobs <= count, "I4", "%zu wishes have become %zu jobs", count, auditing->jobs);
}

void judge_audit(struct sim *sim, struct reader *reader)
{
    struct auditing auditing = {.sim = sim, .reader = reader};
    struct err err;
    const struct job_filter all = {.limit = 1000000};
    bool ok = each_job(reader_jobs(reader, &all, &err), audit_job, &auditing);
    world_check(&sim->world, ok, "I3", "the jobs cannot be listed: %s", err.text);
    audit_submissions(&auditing);
}

/* --- rest ----------------------------------------------------------------------------------------------- */

static bool job_is_over(const struct job_record *job, void *closure)
{
    struct sim *sim = closure;
    world_check(&sim->world, job_state_terminal(job->life.state), "I17", "job %s is still %s", job->birth.id,
                job_state_text(job->life.state));
    return true;
}

void judge_rest(struct sim *sim, struct reader *reader)
{
    struct err err;
    const struct job_filter all = {.limit = 1000000};
    judge_audit(sim, reader);
    each_job(reader_jobs(reader, &all, &err), job_is_over, sim);
    world_check(&sim->world, people_are_served(sim->people), "I17", "somebody has had no answer");
    world_check(&sim->world, truth_live(sim->truth) == 0, "I27", "%zu ranks still live",
                truth_live(sim->truth));
    for (size_t i = 0; i < sim->host_count; i++) {
        world_check(&sim->world, host_is_empty(sim->hosts[i]), "I27", "%s still knows an attempt",
                    host_name(sim->hosts[i]));
    }
    world_check(&sim->world, core_live_jobs(controller_core(sim->controller)) == 0, "I17",
                "the core has live jobs");
}
