/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that moves files to the object store, or brings all of them back. It finds its work by looking
 * at the folders, or at the list of objects: a move that was cut off is found again. It gives way to all
 * else. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/blob/worker.h"
#include "daemon/objects/objects_own.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits_objects.h"

/* --- to the store --------------------------------------------------------------------------------------- */

/* A file that the store does not take holds up no other. */
static void note_failure(struct objects *objects, const struct err *err)
{
    pthread_mutex_lock(&objects->mutex);
    bool known = strcmp(objects->failure.text, err->text) == 0;
    objects->failure = *err;
    pthread_mutex_unlock(&objects->mutex);
    if (!known) {
        log_error("object refused", "text=\"%s\"", err->text);
    }
}

bool look_goes_on(struct look *look, const struct err *err)
{
    if (err->code != ERR_UNAVAILABLE) {
        note_failure(look->objects, err);
    }
    return err->code != ERR_UNAVAILABLE && !atomic_load(&look->objects->stop);
}

bool look_at_file(struct look *look, const char *key, const char *path, struct err *err)
{
    int64_t bytes;
    if (!objects_waits(path, &bytes)) {
        return true;
    }
    look->files += look->counts;
    look->bytes += look->counts ? bytes : 0;
    if (look->counts || objects_store(look->objects, key, path, true, err)) {
        return true;
    }
    return look_goes_on(look, err);
}

static bool look_at_all(struct look *look, struct err *err)
{
    look->wall_ms = clock_wall_ms();
    return look_at_blobs(look, err) && look_at_artifacts(look, err) && look_at_jobs(look, JOB_OUTPUT, err) &&
           look_at_jobs(look, JOB_KEPT, err) && look_at_jobs(look, JOB_CHECKPOINTS, err);
}

static void show(struct objects *objects, const struct look *look)
{
    pthread_mutex_lock(&objects->mutex);
    objects->waiting_files = look->files;
    objects->waiting_bytes = look->bytes;
    objects->arrived_bytes = 0;
    objects->complete = look->files == 0;
    objects->failure.code = look->files == 0 ? ERR_NONE : objects->failure.code;
    pthread_mutex_unlock(&objects->mutex);
}

static bool move(struct objects *objects, struct reader *reader, struct err *err)
{
    struct look counts = {.objects = objects, .reader = reader, .counts = true};
    struct look moves = {.objects = objects, .reader = reader};
    if (!look_at_all(&counts, err)) {
        return false;
    }
    show(objects, &counts);
    if (!look_at_all(&moves, err)) {
        return false;
    }
    struct look rest = {.objects = objects, .reader = reader, .counts = true};
    bool ok = counts.files == 0 || look_at_all(&rest, err);
    show(objects, &rest);
    return ok;
}

/* --- back to files -------------------------------------------------------------------------------------- */

/* Some keys, which are brought back before the next ones are listed: their objects are gone by then. */
struct some {
    struct text_list keys;
    int64_t bytes;
};

static bool take_key(void *closure, const char *key, int64_t size, int64_t modified_ms)
{
    struct some *some = closure;
    text_list_add(&some->keys, xstrdup(key));
    some->bytes += size;
    return some->keys.count < 1000;
}

static const char *behind(const char *key, const char *begin)
{
    size_t length = strlen(begin);
    return strncmp(key, begin, length) == 0 ? key + length : NULL;
}

/* Objects of others under our prefix are left alone. */
static bool bring_back(struct objects *objects, const char *key, struct err *err)
{
    const char *name;
    if ((name = behind(key, "blobs/")) != NULL) {
        return bring_blob_back(objects, name, err);
    }
    if ((name = behind(key, "artifacts/")) != NULL) {
        return bring_artifact_back(objects, name, err);
    }
    if ((name = behind(key, "logs/")) != NULL) {
        return bring_job_back(objects, name, JOB_OUTPUT, err);
    }
    if ((name = behind(key, "files/")) != NULL) {
        return bring_job_back(objects, name, JOB_KEPT, err);
    }
    if ((name = behind(key, "checkpoints/")) != NULL) {
        return bring_job_back(objects, name, JOB_CHECKPOINTS, err);
    }
    return true;
}

static bool goes_on(const struct objects *objects)
{
    return !atomic_load(&objects->stop) && atomic_load(&objects->direction) == OBJECTS_TO_FILES;
}

/* A file that is damaged in the store holds up no other. With those of a job, which come together, the turn
 * ends. */
static bool bring_some_back(struct objects *objects, const char *begin, struct some *some, struct err *err)
{
    const bool single = strcmp(begin, "blobs/") == 0 || strcmp(begin, "artifacts/") == 0;
    bool ok = objects_list(objects, begin, take_key, some, err);
    struct look waiting = {.objects = objects, .files = (int64_t)some->keys.count, .bytes = some->bytes};
    if (waiting.files > 0) {
        show(objects, &waiting);
    }
    for (size_t i = 0; ok && i < some->keys.count && goes_on(objects); i++) {
        ok = bring_back(objects, some->keys.items[i], err) ||
             (single && err->code == ERR_GONE && look_goes_on(&waiting, err));
    }
    return ok;
}

/* Until a list is empty, or ends as the one before: those objects are left alone. Adds how many it has. */
static bool bring_kind_back(struct objects *objects, const char *begin, size_t *left, struct err *err)
{
    autofree char *last = NULL;
    for (bool more = true; more;) {
        struct some some = {0};
        bool ok = bring_some_back(objects, begin, &some, err);
        size_t count = some.keys.count;
        autofree char *end = count > 0 ? xstrdup(some.keys.items[count - 1]) : NULL;
        text_list_finish(&some.keys);
        more = end != NULL && (last == NULL || strcmp(last, end) != 0) && goes_on(objects);
        *left += more ? 0 : count;
        free(give(last));
        last = give(end);
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* The store can be left once all lists were empty in one turn. */
static bool bring_all_back(struct objects *objects, struct err *err)
{
    static const char *const kinds[] = {"blobs/", "artifacts/", "logs/", "files/", "checkpoints/"};
    size_t left = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!bring_kind_back(objects, kinds[i], &left, err)) {
            return false;
        }
    }
    if (left == 0 && goes_on(objects)) {
        objects_note_empty(objects);
        show(objects, &(struct look){0});
    }
    return true;
}

/* --- the thread ----------------------------------------------------------------------------------------- */

/* Leaves the disk alone for several times as long as the look at it took. */
static void rest(struct objects *objects, int64_t took_ms)
{
    struct timespec until;
    int64_t ms = OBJECT_REST * took_ms > OBJECT_SCAN_MS ? OBJECT_REST * took_ms : OBJECT_SCAN_MS;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&objects->mutex);
    int code = 0;
    while (!objects->hurry && !atomic_load(&objects->stop) && code == 0) {
        code = pthread_cond_timedwait(&objects->changed, &objects->mutex, &until);
    }
    objects->hurry = false;
    pthread_mutex_unlock(&objects->mutex);
}

static bool is_away(struct objects *objects)
{
    pthread_mutex_lock(&objects->mutex);
    bool away = objects->away_since_ms != 0;
    pthread_mutex_unlock(&objects->mutex);
    return away;
}

/* A store that is away is looked for, even if nothing waits for it; what waits meanwhile is counted. */
static bool turn(struct objects *objects, struct reader *reader, struct err *err)
{
    struct err ignored;
    if (is_away(objects)) {
        objects_are_there(objects, &ignored);
    }
    return atomic_load(&objects->direction) == OBJECTS_TO_FILES ? bring_all_back(objects, err)
                                                                : move(objects, reader, err);
}

void *mover_main(void *closure)
{
    struct objects *objects = closure;
    struct err err;
    struct reader *reader = reader_open(objects->config.store_path, &err);
    worker_give_way();
    while (reader != NULL && !atomic_load(&objects->stop)) {
        int64_t began_ms = clock_boot_ms();
        err.code = ERR_NONE;
        if (!turn(objects, reader, &err) && err.code != ERR_UNAVAILABLE && err.code != ERR_NONE) {
            note_failure(objects, &err);
        }
        rest(objects, clock_boot_ms() - began_ms);
    }
    if (reader == NULL) {
        log_error("objects failed", "text=\"%s\"", err.text);
    }
    reader_close(reader);
    return NULL;
}
