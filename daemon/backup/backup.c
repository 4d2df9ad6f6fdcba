/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, reads and verifies backups. A folder with a manifest is complete: the manifest is written last, when
 * every file is on disk, and then the folder gets its name. The store copies a database that is in use;
 * callers decide when to make backups. */
#include "daemon/backup/backup.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define MANIFEST_BYTES (64 * 1024)

const struct backup_part backup_parts[] = {
    {.name = BACKUP_DATABASE, .database = true, .needed = true},
    {.name = "mlflow.db", .database = true},
    {.name = "rank.key"},
    {.name = NULL},
};

/* --- making --------------------------------------------------------------------------------------------- */

/* Adds {name: {size, sha256}} to the manifest. */
static bool note_file(const char *path, const char *name, json_t *files, int64_t *bytes, struct err *err)
{
    char hash[HASH_HEX + 1];
    int64_t size;
    if (!hash_file(path, &size, hash, err)) {
        return false;
    }
    *bytes += size;
    json_object_set_new(files, name, json_pack("{s:I, s:s}", "size", (json_int_t)size, "sha256", hash));
    return true;
}

static bool copy_part(const char *state, const char *folder, const struct backup_part *part,
                      const struct copy_watch *watch, json_t *files, int64_t *bytes, struct err *err)
{
    autofree char *from = xprintf("%s/%s", state, part->name);
    autofree char *to = xprintf("%s/%s", folder, part->name);
    if (access(from, F_OK) != 0) {
        bool missing = part->needed || errno != ENOENT;
        return !missing || err_errno(err, "cannot back up %s", from);
    }
    bool copied = part->database ? copy_database(from, to, watch, err) : file_copy(from, to, 0600, err);
    if (!copied && !part->needed && err->code == ERR_DAMAGED) {
        err->code = ERR_IO; /* the controller continues without tracking data */
    }
    return copied && note_file(to, part->name, files, bytes, err);
}

static bool copy_parts(const char *state, const char *folder, const struct copy_watch *watch, json_t *files,
                       int64_t *bytes, struct err *err)
{
    bool ok = true;
    for (const struct backup_part *part = backup_parts; ok && part->name != NULL; part++) {
        ok = copy_part(state, folder, part, watch, files, bytes, err);
    }
    return ok;
}

static bool write_manifest(const char *folder, const struct backup *backup, const json_t *files,
                           struct err *err)
{
    char taken[32];
    clock_format_wall(backup->taken_ms, taken, sizeof taken);
    autofree char *path = xprintf("%s/" BACKUP_MANIFEST, folder);
    autojson json_t *manifest =
        json_pack("{s:s, s:s, s:I, s:I, s:O}", "taken", taken, "version", GPUCTL_VERSION, "bytes",
                  (json_int_t)backup->bytes, "took_ms", (json_int_t)backup->took_ms, "files", files);
    autofree char *text = json_dumps(manifest, JSON_INDENT(2) | JSON_SORT_KEYS);
    return file_replace(path, text, strlen(text), 0600, err); /* also syncs the folder */
}

static bool fill(const char *state, const char *folder, const struct copy_watch *watch, struct backup *backup,
                 struct err *err)
{
    autojson json_t *files = json_object();
    int64_t begun_ms = clock_boot_ms();
    backup->taken_ms = clock_wall_ms();
    if (!copy_parts(state, folder, watch, files, &backup->bytes, err)) {
        return false;
    }
    backup->took_ms = clock_boot_ms() - begun_ms;
    return write_manifest(folder, backup, files, err);
}

/* rename replaces an empty folder, which its owner has made for the backup. */
static bool put_in_place(const char *arriving, const char *target, struct err *err)
{
    autofree char *home = file_folder_of(target);
    if (rename(arriving, target) == 0) {
        return file_sync_folder(home, err);
    }
    return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
               ? err_set(err, ERR_CONFLICT, "%s is there already", target)
               : err_errno(err, "cannot make %s", target);
}

bool backup_make(const char *state, const char *target, const struct copy_watch *watch,
                 struct backup *ret_backup, struct err *err)
{
    autofree char *arriving = xprintf("%s.arriving", target);
    struct backup backup = {0};
    if (!file_remove_tree(arriving, err) || !file_make_directories(arriving, 0700, err)) {
        return false;
    }
    if (fill(state, arriving, watch, &backup, err) && put_in_place(arriving, target, err)) {
        *ret_backup = backup;
        return true;
    }
    file_remove_tree(arriving, NULL);
    return false;
}

static int64_t size_of(const char *state, const char *name, const char *suffix)
{
    struct stat status;
    autofree char *path = xprintf("%s/%s%s", state, name, suffix);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

/* The log may be in the middle of being moved into the database. */
bool backup_fits(const char *state, const char *folder, int64_t margin_bytes, struct err *err)
{
    struct file_disk disk;
    int64_t needed_bytes = 0;
    for (const struct backup_part *part = backup_parts; part->name != NULL; part++) {
        needed_bytes += size_of(state, part->name, "") + size_of(state, part->name, "-wal");
    }
    if (!file_disk(folder, &disk)) {
        return err_errno(err, "cannot ask how much space is free in %s", folder);
    }
    if (disk.free_bytes >= needed_bytes + margin_bytes) {
        return true;
    }
    err_set(err, ERR_DISK_FULL, "a backup takes %lld MiB, which %s has no room for",
            (long long)(needed_bytes / MIB + 1), folder);
    return err_hint(err, "free space there, name another place with gpuctld --backup-folder, or lower "
                         "--min-free");
}

/* --- reading -------------------------------------------------------------------------------------------- */

static json_t *read_manifest(const char *folder, struct err *err)
{
    autofree char *path = xprintf("%s/" BACKUP_MANIFEST, folder);
    autofree char *text = NULL;
    size_t length;
    if (!file_read(path, MANIFEST_BYTES, &text, &length, err)) {
        return NULL;
    }
    json_t *manifest = json_parse(text, length, err);
    if (manifest == NULL) {
        err_hint(err, "%s is the manifest of a backup, and cannot be read", path);
    }
    return manifest;
}

bool backup_read(const char *folder, struct backup *ret_backup, struct err *err)
{
    autojson json_t *manifest = read_manifest(folder, err);
    const char *taken = NULL;
    struct backup backup = {0};
    if (manifest == NULL || !json_need_text(manifest, "taken", &taken, err) ||
        !json_read_int(manifest, "bytes", 0, INT64_MAX, &backup.bytes, err) ||
        !json_read_int(manifest, "took_ms", 0, INT64_MAX, &backup.took_ms, err)) {
        return false;
    }
    if (!text_to_wall_ms(taken, &backup.taken_ms)) {
        return err_field(err, ERR_FIELD, "taken", NULL, "the manifest of %s names no time", folder);
    }
    *ret_backup = backup;
    return true;
}

static bool verify_file(const char *folder, const char *name, const json_t *wanted, struct err *err)
{
    autofree char *path = xprintf("%s/%s", folder, name);
    char hash[HASH_HEX + 1];
    const char *wanted_hash = NULL;
    int64_t size, wanted_size = -1;
    if (!json_need_text(wanted, "sha256", &wanted_hash, err) ||
        !json_read_int(wanted, "size", 0, INT64_MAX, &wanted_size, err) ||
        !hash_file(path, &size, hash, err)) {
        return false;
    }
    if (size == wanted_size && strcmp(hash, wanted_hash) == 0) {
        return true;
    }
    err_set(err, ERR_IO, "%s is not what the backup's manifest says it is", path);
    return err_hint(err, "use another backup");
}

/* Names come from our own list, so a manifest cannot point elsewhere. */
bool backup_verify(const char *folder, struct err *err)
{
    autojson json_t *manifest = read_manifest(folder, err);
    const json_t *files = manifest != NULL ? json_object_get(manifest, "files") : NULL;
    bool ok = manifest != NULL;
    for (const struct backup_part *part = backup_parts; ok && part->name != NULL; part++) {
        const json_t *wanted = json_object_get(files, part->name);
        ok = wanted != NULL
                 ? verify_file(folder, part->name, wanted, err)
                 : !part->needed || err_set(err, ERR_IO, "the backup %s has no %s", folder, part->name);
    }
    return ok;
}
