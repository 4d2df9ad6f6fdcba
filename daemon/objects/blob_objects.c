/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs as objects: "blobs/HASH". A blob never changes, so a file that is read-only is in the store, too. An
 * object counts as unused since its row has gone; an empty file in the folder of disowned ones says when. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/blobs.h"
#include "daemon/objects/objects_own.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/limits_objects.h"

static char *path_of(const struct objects *objects, const char *name)
{
    return xprintf("%s/%s", blobs_folder(objects->config.blobs), name);
}

static bool is_blob(const char *name)
{
    uint8_t hash[HASH_BYTES];
    return text_from_hex(name, hash, sizeof hash);
}

bool look_at_blobs(struct look *look, struct err *err)
{
    struct objects *objects = look->objects;
    autonames struct file_names names = {0};
    if (!file_list(blobs_folder(objects->config.blobs), &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = path_of(objects, names.items[i]);
        autofree char *key = xprintf("blobs/%s", names.items[i]);
        if (!is_blob(names.items[i])) {
            continue;
        }
        if (!look_at_file(look, key, path, err)) {
            return false;
        }
        blobs_evict(objects->config.blobs, names.items[i], (look->wall_ms - objects->config.after_ms) / 1000);
    }
    return true;
}

/* --- back ----------------------------------------------------------------------------------------------- */

/* The same bytes may have been sent again meanwhile. */
static bool place(struct objects *objects, const char *from, const char *path, struct err *err)
{
    bool ok = link(from, path) == 0 || errno == EEXIST || err_errno(err, "cannot keep a blob");
    unlink(from);
    return ok && file_sync_folder(blobs_folder(objects->config.blobs), err);
}

static bool fetch(struct objects *objects, const char *name, mode_t mode, struct err *err)
{
    char random[ID_LENGTH + 1];
    random_id(random);
    autofree char *path = path_of(objects, name);
    autofree char *from = xprintf("%s/" BLOBS_ARRIVING "/%s", blobs_folder(objects->config.blobs), random);
    autofree char *key = xprintf("blobs/%s", name);
    return objects_fetch(objects, key, from, name, err) && chmod(from, mode) == 0 &&
           place(objects, from, path, err);
}

bool objects_recall_blob(struct objects *objects, const uint8_t hash[HASH_BYTES], struct err *err)
{
    char name[HASH_HEX + 1];
    text_to_hex(hash, HASH_BYTES, name);
    autofree char *path = path_of(objects, name);
    return access(path, F_OK) == 0 || fetch(objects, name, 0400, err);
}

bool bring_blob_back(struct objects *objects, const char *name, struct err *err)
{
    autofree char *path = path_of(objects, name);
    autofree char *key = xprintf("blobs/%s", name);
    if (!is_blob(name)) {
        return true;
    }
    if (access(path, F_OK) != 0 && !fetch(objects, name, 0600, err)) {
        return false;
    }
    return objects_disclaim(path, err) && objects_delete(objects, key, err);
}

char *objects_link_blob(const struct objects *objects, const uint8_t hash[HASH_BYTES])
{
    char name[HASH_HEX + 1];
    int64_t bytes;
    text_to_hex(hash, HASH_BYTES, name);
    autofree char *path = path_of(objects, name);
    autofree char *key = xprintf("blobs/%s", name);
    return objects_waits(path, &bytes) ? NULL : objects_link(objects, key);
}

/* --- removal -------------------------------------------------------------------------------------------- */

static char *disowned_path(const struct objects *objects, const char *name)
{
    return xprintf("%s/disowned/%s", blobs_folder(objects->config.blobs), name);
}

void objects_disown_blob(struct objects *objects, const uint8_t hash[HASH_BYTES])
{
    char name[HASH_HEX + 1];
    struct err ignored;
    text_to_hex(hash, HASH_BYTES, name);
    autofree char *path = disowned_path(objects, name), *folder = file_folder_of(path);
    autoclose int fd =
        file_make_directories(folder, 0700, &ignored) ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        futimens(fd, NULL);
    }
}

struct sweep {
    struct objects *objects;
    const struct objects_rows *rows;
    int64_t before_ms;
    struct text_list keys; /* of old objects */
};

static bool see(void *closure, const char *key, int64_t size, int64_t modified_ms)
{
    struct sweep *sweep = closure;
    if (modified_ms < sweep->before_ms) {
        text_list_add(&sweep->keys, xstrdup(key));
    }
    return !atomic_load(&sweep->objects->stop);
}

static bool was_disowned_before(const struct sweep *sweep, const char *name)
{
    struct stat status;
    autofree char *path = disowned_path(sweep->objects, name);
    return stat(path, &status) != 0 || status.st_mtim.tv_sec * 1000LL < sweep->before_ms;
}

/* The mover stores nothing meanwhile, so an upload of the same bytes is seen here, or is stored afterwards.
 */
static bool is_unused(const struct sweep *sweep, const char *name, bool *ret_unused, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    bool has = true;
    autofree char *path = path_of(sweep->objects, name);
    *ret_unused = false;
    if (!text_from_hex(name, hash, sizeof hash) || !was_disowned_before(sweep, name) ||
        access(path, F_OK) == 0 || blobs_are_arriving(sweep->objects->config.blobs, hash)) {
        return true;
    }
    if (!sweep->rows->has_blob(sweep->rows->closure, hash, &has, err)) {
        return false;
    }
    *ret_unused = !has;
    return true;
}

static bool sweep_blob(const struct sweep *sweep, const char *key, bool dry, int64_t *count, struct err *err)
{
    const char *name = strchr(key, '/') + 1;
    struct objects *objects = sweep->objects;
    bool unused;
    pthread_mutex_lock(&objects->moving);
    bool ok = is_unused(sweep, name, &unused, err) && (!unused || dry || objects_delete(objects, key, err));
    pthread_mutex_unlock(&objects->moving);
    if (ok && unused) {
        autofree char *mark = disowned_path(objects, name);
        *count += 1;
        dry ? 0 : unlink(mark);
    }
    return ok;
}

/* "logs/JOB/NAME" of a job that no row names, as after a restore of an earlier backup. */
static bool sweep_job(const struct sweep *sweep, const char *key, bool dry, int64_t *count, struct err *err)
{
    const char *id = strchr(key, '/') + 1, *end = strchr(id, '/');
    autofree char *job = xstrndup(id, end != NULL ? (size_t)(end - id) : 0);
    bool has = true;
    if (!text_is_id(job) || !sweep->rows->has_job(sweep->rows->closure, job, &has, err)) {
        return !text_is_id(job);
    }
    *count += !has;
    return has || dry || objects_delete(sweep->objects, key, err);
}

bool objects_sweep(struct objects *objects, const struct objects_rows *rows, int64_t before_ms, bool dry,
                   int64_t *ret_count, struct err *err)
{
    static const char *const kinds[] = {"blobs/", "logs/", "files/", "checkpoints/"};
    *ret_count = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct sweep sweep = {.objects = objects, .rows = rows, .before_ms = before_ms};
        bool ok = objects_list(objects, kinds[kind], see, &sweep, err);
        for (size_t i = 0; ok && i < sweep.keys.count && !atomic_load(&objects->stop); i++) {
            ok = (kind == 0 ? sweep_blob : sweep_job)(&sweep, sweep.keys.items[i], dry, ret_count, err);
        }
        text_list_finish(&sweep.keys);
        if (!ok) {
            return false;
        }
    }
    return true;
}
