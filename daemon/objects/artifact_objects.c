/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts as objects: "artifacts/PATH". Their names and sizes stay in the controller's folder, so lists
 * need no store: a file that only the store has is a placeholder there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/artifacts.h"
#include "daemon/objects/objects_own.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"

static char *key_of(const char *path)
{
    return xprintf("artifacts/%s", path);
}

static bool look_at_one(struct look *look, const char *path, struct text_list *folders, struct err *err)
{
    struct artifacts *artifacts = look->objects->config.artifacts;
    autofree char *whole = xprintf("%s/%s", artifacts_folder(artifacts), path), *key = key_of(path);
    struct stat state;
    if (lstat(whole, &state) != 0) {
        return true;
    }
    if (S_ISDIR(state.st_mode)) {
        text_list_add(folders, xstrdup(path));
        return true;
    }
    if (!look_at_file(look, key, whole, err)) {
        return false;
    }
    artifacts_evict(artifacts, path, (look->wall_ms - look->objects->config.after_ms) / 1000);
    return true;
}

/* Folder by folder: the list has those that are still to be looked at. */
bool look_at_artifacts(struct look *look, struct err *err)
{
    const char *top = artifacts_folder(look->objects->config.artifacts);
    struct text_list folders = {0};
    bool ok = true;
    text_list_add(&folders, xstrdup(""));
    for (size_t at = 0; ok && at < folders.count; at++) {
        autofree char *path = xprintf("%s/%s", top, folders.items[at]);
        autonames struct file_names names = {0};
        ok = access(path, F_OK) != 0 || file_list(path, &names, err);
        for (size_t i = 0; ok && i < names.count; i++) {
            const char *folder = folders.items[at];
            autofree char *name = xprintf("%s%s%s", folder, *folder != '\0' ? "/" : "", names.items[i]);
            ok = look_at_one(look, name, &folders, err);
        }
    }
    text_list_finish(&folders);
    return ok;
}

/* --- back ----------------------------------------------------------------------------------------------- */

static bool fetch(struct objects *objects, const char *path, mode_t mode, bool missing, struct err *err)
{
    char random[ID_LENGTH + 1];
    random_id(random);
    struct artifacts *artifacts = objects->config.artifacts;
    autofree char *arriving = artifacts_arriving(artifacts);
    autofree char *from = xprintf("%s/%s", arriving, random), *key = key_of(path);
    return objects_fetch(objects, key, from, NULL, err) && chmod(from, mode) == 0 &&
           artifacts_bring_back(artifacts, from, path, missing, err);
}

bool objects_recall_artifact(struct objects *objects, const char *path, struct err *err)
{
    return !artifacts_is_away(objects->config.artifacts, path) || fetch(objects, path, 0400, false, err);
}

bool bring_artifact_back(struct objects *objects, const char *path, struct err *err)
{
    struct artifacts *artifacts = objects->config.artifacts;
    autofree char *whole = xprintf("%s/%s", artifacts_folder(artifacts), path), *key = key_of(path);
    struct err ignored;
    if (!artifact_path_check(path, &ignored) || strstr(path, "..") != NULL) {
        return true; /* no artifact of ours */
    }
    bool there = access(whole, F_OK) == 0 && !artifacts_is_away(artifacts, path);
    if (!there && !fetch(objects, path, 0600, true, err)) {
        return false;
    }
    return objects_disclaim(whole, err) && objects_delete(objects, key, err);
}

/* --- removal -------------------------------------------------------------------------------------------- */

static bool see(void *closure, const char *key, int64_t size, int64_t modified_ms)
{
    text_list_add(closure, xstrdup(key));
    return true;
}

static bool remove_below(struct objects *objects, const char *path, struct err *err)
{
    autofree char *begin = xprintf("artifacts/%s/", path);
    struct text_list keys = {0};
    bool ok = objects_list(objects, begin, see, &keys, err);
    for (size_t i = 0; ok && i < keys.count; i++) {
        ok = objects_delete(objects, keys.items[i], err);
    }
    text_list_finish(&keys);
    return ok;
}

/* The mover stores nothing meanwhile. Of a file that is not stored yet an earlier version may be. */
bool objects_remove_artifact(struct objects *objects, const char *path, struct err *err)
{
    struct artifacts *artifacts = objects->config.artifacts;
    autofree char *whole = xprintf("%s/%s", artifacts_folder(artifacts), path), *key = key_of(path);
    struct stat state;
    pthread_mutex_lock(&objects->moving);
    bool there = lstat(whole, &state) == 0;
    bool folder = there && S_ISDIR(state.st_mode);
    bool ok = (!there || (folder ? remove_below(objects, path, err) : objects_delete(objects, key, err))) &&
              artifacts_delete(artifacts, path, err);
    pthread_mutex_unlock(&objects->moving);
    return ok;
}
