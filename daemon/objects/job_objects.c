/* SPDX-License-Identifier: Apache-2.0 */
/* Files of jobs that have ended, as objects: output is "logs/JOB/NAME", what ranks kept "files/JOB/NAME", and
 * checkpoints are "checkpoints/JOB/pieces/SHA-256" and "checkpoints/JOB/MANIFEST". The files of a folder go
 * and come back together, so nobody reads a part of them; its marks say where they are (job_folder.h).
 * Manifests are copied only: with them people see without the store which checkpoint a job has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/checkpoints/checkpoints.h"
#include "daemon/blob/job_folder.h"
#include "daemon/blob/logs.h"
#include "daemon/objects/objects_own.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/limits_objects.h"

/* --- folders and keys ----------------------------------------------------------------------------------- */

#define PIECES "pieces/" /* of a checkpoint, in its keys as in its folder */

static const char *kind_of(enum job_files what)
{
    switch (what) {
    case JOB_OUTPUT:
        return "logs";
    case JOB_KEPT:
        return "files";
    case JOB_CHECKPOINTS:
        return "checkpoints";
    }
    abort();
}

/* The objects of a job's folder begin so. The caller frees it. */
static char *begin_of(enum job_files what, const char *job)
{
    return xprintf("%s/%s/%s", kind_of(what), job, what == JOB_CHECKPOINTS ? PIECES : "");
}

static char *folder_of(const struct objects *objects, const char *job, enum job_files what)
{
    return what == JOB_CHECKPOINTS ? checkpoints_pieces_folder(objects->config.checkpoints, job)
                                   : logs_job_folder(objects->config.logs, job, what == JOB_KEPT);
}

static const char *top_of(const struct objects *objects, enum job_files what)
{
    return what == JOB_CHECKPOINTS ? checkpoints_folder(objects->config.checkpoints)
                                   : logs_top_folder(objects->config.logs, what == JOB_KEPT);
}

static bool replace(const struct objects *objects, const char *job, enum job_files what, const char *to,
                    const struct job_folder_extent *extent, struct err *err)
{
    return what == JOB_CHECKPOINTS
               ? checkpoints_replace(objects->config.checkpoints, job, to, extent, err)
               : logs_replace(objects->config.logs, job, what == JOB_KEPT, to, extent, err);
}

bool jobs_clean_up(const struct objects *objects, struct err *err)
{
    static const enum job_files all[] = {JOB_OUTPUT, JOB_KEPT, JOB_CHECKPOINTS};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        autofree char *folder = xprintf("%s/" JOB_FOLDER_ARRIVING, top_of(objects, all[i]));
        if (!file_remove_tree(folder, err)) {
            return false;
        }
    }
    return true;
}

/* --- away ----------------------------------------------------------------------------------------------- */

/* A new folder, beside those of jobs, in which a file of this name stands. The caller frees it. */
static char *make_folder(const struct objects *objects, enum job_files what, const char *mark,
                         struct err *err)
{
    char random[ID_LENGTH + 1];
    random_id(random);
    autofree char *folder = xprintf("%s/" JOB_FOLDER_ARRIVING "/%s", top_of(objects, what), random);
    autofree char *path = xprintf("%s/%s", folder, mark != NULL ? mark : "");
    if (!file_make_directories(folder, 0700, err) ||
        (mark != NULL && !file_replace(path, "", 0, 0600, err))) {
        return NULL;
    }
    return give(folder);
}

/* Whether the store has all that the folder has: nothing has changed since that was noted. */
static bool is_stored(const char *folder, const struct job_folder_extent *extent)
{
    struct stat status;
    autofree char *mark = xprintf("%s/" JOB_FOLDER_STORED, folder);
    return stat(mark, &status) == 0 &&
           extent->changed_ns < status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
}

/* The files of the folder, but not folders in it; their keys begin so. */
static bool store_files(struct look *look, const char *begin, const char *folder, struct err *err)
{
    autonames struct file_names names = {0};
    if (!file_list(folder, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        struct stat status;
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        autofree char *key = xprintf("%s%s", begin, names.items[i]);
        bool is_file = lstat(path, &status) == 0 && S_ISREG(status.st_mode);
        if (is_file && !job_folder_is_mark(names.items[i]) &&
            !objects_store(look->objects, key, path, false, err)) {
            return false;
        }
    }
    return true;
}

static bool store_manifests(struct look *look, const char *job, const char *pieces, struct err *err)
{
    autofree char *folder = file_folder_of(pieces), *begin = xprintf("checkpoints/%s/", job);
    return store_files(look, begin, folder, err);
}

static bool store_all(struct look *look, const char *job, enum job_files what, const char *folder,
                      const struct job_folder_extent *extent, struct err *err)
{
    autofree char *begin = begin_of(what, job);
    return (is_stored(folder, extent) || store_files(look, begin, folder, err)) &&
           (what != JOB_CHECKPOINTS || store_manifests(look, job, folder, err));
}

static bool put_away(struct look *look, const char *job, enum job_files what, const char *folder,
                     struct err *err)
{
    struct job_folder_extent extent;
    if (!job_folder_extent(folder, &extent, err)) {
        return false;
    }
    if (extent.changed_ns / 1000000 >= look->wall_ms - look->objects->config.after_ms) {
        return true; /* more comes */
    }
    if (look->counts) {
        bool waits = !is_stored(folder, &extent);
        look->files += waits ? extent.files : 0;
        look->bytes += waits ? extent.bytes : 0;
        return true;
    }
    if (!store_all(look, job, what, folder, &extent, err)) {
        return false;
    }
    autofree char *to = make_folder(look->objects, what, JOB_FOLDER_AWAY, err);
    return to != NULL && replace(look->objects, job, what, to, &extent, err);
}

/* A job that ended long enough ago, and whose folder nobody has used since. */
static bool is_due(const struct look *look, const char *job, const char *folder, bool *ret_due,
                   struct err *err)
{
    struct stat status;
    struct job_record record;
    int64_t before_ms = look->wall_ms - look->objects->config.after_ms;
    *ret_due = false;
    if (stat(folder, &status) != 0 || status.st_mtim.tv_sec * 1000LL >= before_ms) {
        return true;
    }
    autorows struct rows rows = reader_job(look->reader, job, err);
    *ret_due = rows_job(&rows, &record) && job_state_terminal(record.life.state) &&
               record.life.ended_ms <= before_ms;
    return !rows.failed;
}

static bool look_at_job(struct look *look, const char *job, enum job_files what, struct err *err)
{
    autofree char *folder = folder_of(look->objects, job, what);
    bool due;
    if (!text_is_id(job) || job_folder_is_away(folder)) {
        return true;
    }
    return is_due(look, job, folder, &due, err) &&
           (!due || put_away(look, job, what, folder, err) || look_goes_on(look, err));
}

static bool look_in(struct look *look, const char *part, enum job_files what, struct err *err)
{
    autonames struct file_names jobs = {0};
    if (access(part, F_OK) != 0) {
        return true;
    }
    if (!file_list(part, &jobs, err)) {
        return false;
    }
    for (size_t i = 0; i < jobs.count; i++) {
        if (!look_at_job(look, jobs.items[i], what, err) || atomic_load(&look->objects->stop)) {
            return false;
        }
    }
    return true;
}

/* Output and what ranks kept is in TOP/ab/abcdefghijklmnop, checkpoints are in TOP/abcdefghijklmnop. */
bool look_at_jobs(struct look *look, enum job_files what, struct err *err)
{
    const char *top = top_of(look->objects, what);
    autonames struct file_names parts = {0};
    if (what == JOB_CHECKPOINTS) {
        return look_in(look, top, what, err);
    }
    if (!file_list(top, &parts, err)) {
        return false;
    }
    for (size_t i = 0; i < parts.count; i++) {
        autofree char *part = xprintf("%s/%s", top, parts.items[i]);
        if (strcmp(parts.items[i], JOB_FOLDER_ARRIVING) != 0 && !look_in(look, part, what, err)) {
            return false;
        }
    }
    return true;
}

/* --- back ----------------------------------------------------------------------------------------------- */

struct listing {
    struct text_list keys;
    int64_t bytes;
};

static bool see(void *closure, const char *key, int64_t size, int64_t modified_ms)
{
    struct listing *listing = closure;
    text_list_add(&listing->keys, xstrdup(key));
    listing->bytes += size > 0 ? size : 0;
    return true;
}

/* All objects of the job that are of this kind. */
static bool list(struct objects *objects, const char *job, enum job_files what, struct listing *listing,
                 struct err *err)
{
    autofree char *begin = xprintf("%s/%s/", kind_of(what), job);
    return objects_list(objects, begin, see, listing, err);
}

/* The name of the object's file in the folder whose keys begin so; NULL: it is none of ours there. */
static const char *name_in(const char *key, const char *begin)
{
    size_t length = strlen(begin);
    const char *name = strncmp(key, begin, length) == 0 ? key + length : "";
    bool ours = *name != '\0' && *name != '.' && strchr(name, '/') == NULL && !job_folder_is_mark(name);
    return ours ? name : NULL;
}

static bool fetch_all(struct objects *objects, const struct listing *listing, const char *begin,
                      const char *folder, bool named_by_hash, struct err *err)
{
    for (size_t i = 0; i < listing->keys.count; i++) {
        const char *key = listing->keys.items[i], *name = name_in(key, begin);
        autofree char *path = xprintf("%s/%s", folder, name != NULL ? name : "");
        if (name != NULL && !objects_fetch(objects, key, path, named_by_hash ? name : NULL, err)) {
            return false;
        }
    }
    return true;
}

/* mark: JOB_FOLDER_STORED, or NULL if the store is not to be counted on. */
static bool recall(struct objects *objects, const char *job, enum job_files what, const char *mark,
                   const struct listing *listing, struct err *err)
{
    struct err ignored;
    autofree char *folder = make_folder(objects, what, NULL, err), *begin = begin_of(what, job);
    autofree char *path = folder != NULL && mark != NULL ? xprintf("%s/%s", folder, mark) : NULL;
    bool ok = folder != NULL && fetch_all(objects, listing, begin, folder, what == JOB_CHECKPOINTS, err) &&
              (path == NULL || file_replace(path, "", 0, 0600, err)) && file_sync_folder(folder, err);
    if (!ok && folder != NULL) {
        file_remove_tree(folder, &ignored);
    }
    return ok && replace(objects, job, what, folder, NULL, err);
}

bool objects_recall_job(struct objects *objects, const char *job_id, enum job_files what, struct err *err)
{
    struct listing listing = {0};
    autofree char *folder = folder_of(objects, job_id, what);
    if (!job_folder_is_away(folder)) {
        return true;
    }
    bool ok = list(objects, job_id, what, &listing, err) &&
              recall(objects, job_id, what, JOB_FOLDER_STORED, &listing, err);
    text_list_finish(&listing.keys);
    return ok;
}

bool objects_have_job(const struct objects *objects, const char *job_id, enum job_files what)
{
    autofree char *folder = folder_of(objects, job_id, what);
    if (job_folder_is_away(folder)) {
        return true;
    }
    utimensat(AT_FDCWD, folder, NULL, 0);
    return false;
}

char *objects_link_piece(const struct objects *objects, const char *job_id, const uint8_t hash[HASH_BYTES])
{
    char name[HASH_HEX + 1];
    text_to_hex(hash, HASH_BYTES, name);
    autofree char *begin = begin_of(JOB_CHECKPOINTS, job_id), *key = xprintf("%s%s", begin, name);
    return objects_link(objects, key);
}

static bool delete_all(struct objects *objects, const struct listing *listing, struct err *err)
{
    for (size_t i = 0; i < listing->keys.count; i++) {
        if (!objects_delete(objects, listing->keys.items[i], err)) {
            return false;
        }
    }
    return true;
}

/* A folder with the manifests, and pieces that are away: what the job had before its folder was lost. */
static bool fetch_manifests(struct objects *objects, const char *job, const char *to,
                            const struct listing *listing, struct err *err)
{
    autofree char *begin = xprintf("checkpoints/%s/", job);
    autofree char *pieces = xprintf("%s/" PIECES, to), *mark = xprintf("%s" JOB_FOLDER_AWAY, pieces);
    return file_make_directories(pieces, 0700, err) && file_replace(mark, "", 0, 0600, err) &&
           fetch_all(objects, listing, begin, to, false, err) && file_sync_folder(to, err);
}

static bool bring_manifests_back(struct objects *objects, const char *job, const struct listing *listing,
                                 struct err *err)
{
    struct err ignored;
    const char *top = top_of(objects, JOB_CHECKPOINTS);
    autofree char *folder = xprintf("%s/%s", top, job);
    if (access(folder, F_OK) == 0) {
        return true;
    }
    autofree char *to = make_folder(objects, JOB_CHECKPOINTS, NULL, err);
    bool ok = to != NULL && fetch_manifests(objects, job, to, listing, err) &&
              (rename(to, folder) == 0 || err_errno(err, "cannot make the folder %s", folder));
    if (!ok && to != NULL) {
        file_remove_tree(to, &ignored);
    }
    return ok && file_sync_folder(top, err);
}

/* All objects of the job whose key this is; what is here is as good as what is there, or better. */
bool bring_job_back(struct objects *objects, const char *name, enum job_files what, struct err *err)
{
    struct listing listing = {0};
    const char *end = strchr(name, '/');
    autofree char *job = xstrndup(name, end != NULL ? (size_t)(end - name) : 0);
    if (!text_is_id(job)) {
        return true;
    }
    autofree char *folder = folder_of(objects, job, what), *mark = xprintf("%s/" JOB_FOLDER_STORED, folder);
    bool ok = list(objects, job, what, &listing, err) &&
              (what != JOB_CHECKPOINTS || bring_manifests_back(objects, job, &listing, err));
    bool here = access(folder, F_OK) == 0 && !job_folder_is_away(folder);
    ok = ok && (here || recall(objects, job, what, NULL, &listing, err));
    if (ok) {
        unlink(mark);
        ok = file_sync_folder(folder, err) && delete_all(objects, &listing, err);
    }
    text_list_finish(&listing.keys);
    return ok;
}

/* --- removal -------------------------------------------------------------------------------------------- */

bool objects_remove_job(struct objects *objects, const char *job_id, enum job_files what, bool dry,
                        int64_t *ret_bytes, struct err *err)
{
    struct listing listing = {0};
    autofree char *folder = folder_of(objects, job_id, what);
    *ret_bytes = 0;
    if (!job_folder_is_stored(folder)) {
        return true;
    }
    bool ok = list(objects, job_id, what, &listing, err) && (dry || delete_all(objects, &listing, err));
    *ret_bytes = job_folder_is_away(folder) ? listing.bytes : 0;
    text_list_finish(&listing.keys);
    return ok;
}
