/* SPDX-License-Identifier: Apache-2.0 */
/* Removes MLflow's runs that have reached the age of their project, and what they have left. The tracking
 * store is only used on its own thread, a short step at a time. A run goes first, then its files, then its
 * rows. Each step begins after the steps before it are on disk, so no file is deleted of a run that may come
 * back. Nothing happens unless an age is set. */
#include "daemon/retention/runs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/blob/artifacts.h"
#include "daemon/blob/worker.h"
#include "daemon/objects/objects.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define FILES_HERE "mlflow-artifacts:/"
#define FILES      "/artifacts"

/* --- steps on the thread of the store ------------------------------------------------------------------- */

/* A step, for which the round waits: what it takes and what it finds. */
struct store_step {
    bool (*work)(struct store_step *step, struct tracking *tracking, struct tracking_error *error);
    struct round *round;
    int64_t after_key; /* where the walk over runs is */
    bool last;
    struct {
        int64_t key, by_ms;
    } runs[RETENTION_STEP_RUNS]; /* that are old */
    size_t count, next;
    struct tracking_removal removal;
    bool done;
    int64_t bytes, free_bytes;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ended, ok;
    int64_t took_us;
    struct tracking_error error;
};

/* Belongs to the worker until it is collected, which may be after the round went on. */
struct errand {
    struct task task; /* first */
    struct store_step *step;
};

static void errand_work(struct task *task)
{
    struct store_step *step = ((struct errand *)task)->step;
    int64_t began_us = clock_boot_us();
    bool ok = step->work(step, step->round->config->tracking.tracking, &step->error);
    int64_t took_us = clock_boot_us() - began_us;
    pthread_mutex_lock(&step->mutex);
    step->ok = ok;
    step->took_us = took_us;
    step->ended = true;
    pthread_cond_signal(&step->changed);
    pthread_mutex_unlock(&step->mutex);
}

static void errand_done(struct task *task)
{
    free(task);
}

static bool take(struct store_step *step, bool (*work)(struct store_step *step, struct tracking *tracking,
                                                       struct tracking_error *error))
{
    struct errand *errand = xzalloc(sizeof *errand);
    *errand = (struct errand){.task = {.work = errand_work, .done = errand_done}, .step = step};
    step->work = work;
    step->ended = false;
    worker_give(step->round->config->tracking.worker, &errand->task);
    pthread_mutex_lock(&step->mutex);
    while (!step->ended) {
        pthread_cond_wait(&step->changed, &step->mutex);
    }
    pthread_mutex_unlock(&step->mutex);
    round_rest(step->round, step->took_us);
    return step->ok || err_set(step->round->err, ERR_UNAVAILABLE, "%s", step->error.message);
}

/* --- what is left of runs ------------------------------------------------------------------------------- */

static bool next_removal(struct store_step *step, struct tracking *tracking, struct tracking_error *error)
{
    return tracking_removal_next(tracking, &step->removal, error);
}

static bool remove_piece(struct store_step *step, struct tracking *tracking, struct tracking_error *error)
{
    return tracking_removal_piece(tracking, step->removal.key, RETENTION_RUN_PIECE_ROWS, &step->done, error);
}

/* The folder of the run or model among the artifacts, which has its id; NULL: its files are elsewhere. The
 * caller frees it. */
static char *folder_of(const struct tracking_removal *removal)
{
    struct err err;
    const char *uri = removal->artifact_uri;
    size_t begin = strlen(FILES_HERE), length = strlen(uri), end = strlen(FILES);
    if (strncmp(uri, FILES_HERE, begin) != 0 || length < begin + end ||
        strcmp(uri + length - end, FILES) != 0) {
        return NULL;
    }
    autofree char *folder = xstrndup(uri + begin, length - begin - end);
    const char *slash = strrchr(folder, '/');
    bool own = slash != NULL && strcmp(slash + 1, removal->id) == 0 && artifact_path_check(folder, &err);
    return own ? give(folder) : NULL;
}

static bool remove_folder(const struct round *round, const char *folder)
{
    const struct retention_config *config = round->config;
    return config->objects != NULL ? objects_remove_artifact(config->objects, folder, round->err)
                                   : artifacts_delete(config->tracking.artifacts, folder, round->err);
}

static bool remove_rest(struct store_step *step)
{
    const struct round *round = step->round;
    autofree char *folder = folder_of(&step->removal);
    if (folder != NULL && !remove_folder(round, folder)) {
        return false;
    }
    for (step->done = false; !step->done && !round_stopped(round);) {
        if (!take(step, remove_piece)) {
            return false;
        }
    }
    return true;
}

static bool finish_removals(struct store_step *step)
{
    while (!round_stopped(step->round) && take(step, next_removal)) {
        if (step->removal.key == 0) {
            return true;
        }
        bool ok = remove_rest(step);
        tracking_removal_finish(&step->removal);
        if (!ok) {
            return false;
        }
    }
    return round_stopped(step->round);
}

/* --- old runs ------------------------------------------------------------------------------------------- */

static void judge(const struct tracking_over *run, void *closure)
{
    struct store_step *step = closure;
    int64_t age_ms = retention_rules_of(&step->round->rules, run->project)->runs_ms;
    int64_t by_ms = step->round->wall_ms - age_ms;
    if (age_ms > 0 && run->at_ms <= by_ms) {
        step->runs[step->count].key = run->key;
        step->runs[step->count++].by_ms = by_ms;
    }
}

static bool find_runs(struct store_step *step, struct tracking *tracking, struct tracking_error *error)
{
    step->count = 0;
    return tracking_runs_over(tracking, &step->after_key, RETENTION_STEP_RUNS, judge, step, &step->last,
                              error);
}

static bool remove_run(struct store_step *step, struct tracking *tracking, struct tracking_error *error)
{
    return tracking_run_remove(tracking, step->runs[step->next].key, step->runs[step->next].by_ms,
                               &step->done, error);
}

static bool remove_runs(struct store_step *step)
{
    struct round *round = step->round;
    for (step->next = 0; step->next < step->count && !round_stopped(round); step->next++) {
        if (!take(step, remove_run)) {
            return false;
        }
        round->report->runs += step->done;
    }
    return finish_removals(step);
}

static bool walk(struct store_step *step)
{
    struct round *round = step->round;
    if (!retention_rules_end_runs(&round->rules) || round->report->doubtful) {
        return true;
    }
    for (step->last = false; !step->last && !round_stopped(round);) {
        if (!take(step, find_runs)) {
            return false;
        }
        round->report->runs += round->dry ? (int64_t)step->count : 0;
        if (!round->dry && !remove_runs(step)) {
            return false;
        }
    }
    return true;
}

/* --- the file of the database --------------------------------------------------------------------------- */

static bool measure(struct store_step *step, struct tracking *tracking, struct tracking_error *error)
{
    return tracking_file_use(tracking, &step->bytes, &step->free_bytes, error);
}

static bool shrink_a_little(struct store_step *step, struct tracking *tracking, struct tracking_error *error)
{
    return tracking_shrink(tracking, (int64_t)step->round->pages, error) && measure(step, tracking, error);
}

static bool shrink(struct store_step *step)
{
    struct round *round = step->round;
    if (!take(step, measure)) {
        return false;
    }
    for (int64_t before = INT64_MAX;
         round_is_bloated(step->bytes, step->free_bytes) && step->bytes < before && !round_stopped(round);) {
        before = step->bytes;
        if (!take(step, shrink_a_little)) {
            return false;
        }
        round->report->file_bytes += before - step->bytes;
        round_choose_pace(round, RETENTION_STEP_PAGES, &round->pages);
    }
    return true;
}

bool runs_sweep(struct round *round)
{
    if (round->config->tracking.tracking == NULL) {
        return true;
    }
    struct store_step *step = xzalloc(sizeof *step);
    step->round = round;
    pthread_mutex_init(&step->mutex, NULL);
    pthread_cond_init(&step->changed, NULL);
    bool ok = (round->dry || finish_removals(step)) && walk(step) && (round->dry || shrink(step));
    pthread_cond_destroy(&step->changed);
    pthread_mutex_destroy(&step->mutex);
    free(step);
    return ok;
}
