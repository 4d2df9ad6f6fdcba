/* SPDX-License-Identifier: Apache-2.0 */
/* Inspects databases and payloads at rest. It changes none of them, and holds a snapshot of a database only
 * while it copies the database. It checks all rows in the copy. It opens the copy as a controller would,
 * which also rehearses a migration. The store has the list of checks. */
#include "daemon/backup/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/backup/backup.h"
#include "daemon/store/check.h"
#include "daemon/store/database/copy.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"

struct inspection {
    FILE *out;
    const char *blobs; /* NULL: no folder of payloads */
    bool has_store;    /* an object store has those that are not there */
    int64_t stored;
    int64_t findings;
    int64_t files, rows, bytes; /* checked payloads */
    int64_t unseen;             /* payloads whose files are elsewhere */
};

static void find(struct inspection *inspection, const char *finding)
{
    inspection->findings++;
    fprintf(inspection->out, "  finding: %s\n", finding);
}

static void find_error(struct inspection *inspection, const struct err *err)
{
    find(inspection, err->text);
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static void found(const char *finding, void *closure)
{
    find(closure, finding);
}

static void looked(const char *promise, int64_t broken, void *closure)
{
    struct inspection *inspection = closure;
    if (broken == 0) {
        fprintf(inspection->out, "%s: yes\n", promise);
    } else {
        fprintf(inspection->out, "%s: NO, %" PRId64 " do not\n", promise, broken);
    }
}

static void show_counts(const struct check_counts *counts, void *closure)
{
    const struct inspection *inspection = closure;
    fprintf(inspection->out,
            "database: %" PRId64 " jobs, %" PRId64 " events, %" PRId64 " attempts, %" PRId64 " payloads\n",
            counts->jobs, counts->events, counts->attempts, counts->blobs);
}

/* --- payloads ------------------------------------------------------------------------------------------- */

static void look_at_file(struct inspection *inspection, const struct blob_row *row, const char *name)
{
    char hash[HASH_HEX + 1];
    int64_t size;
    struct err err;
    if (inspection->blobs == NULL) {
        inspection->unseen++;
        return;
    }
    autofree char *path = xprintf("%s/%s", inspection->blobs, name);
    if (inspection->has_store && access(path, F_OK) != 0 && errno == ENOENT) {
        inspection->stored++;
        return;
    }
    inspection->files++;
    if (!hash_file(path, &size, hash, &err)) {
        find_error(inspection, &err);
        return;
    }
    inspection->bytes += size;
    if (size != row->size || strcmp(hash, name) != 0) {
        autofree char *text =
            xprintf("payload %s: the file has %" PRId64 " bytes with the hash %s, not %" PRId64, name, size,
                    hash, row->size);
        find(inspection, text);
    }
}

static void look_at_row(struct inspection *inspection, const struct blob_row *row, const char *name)
{
    char hash[HASH_HEX + 1];
    hash_hex(row->bytes, (size_t)row->size, hash);
    inspection->rows++;
    inspection->bytes += row->size;
    if (strcmp(hash, name) != 0) {
        autofree char *text = xprintf("payload %s: its row has bytes with the hash %s", name, hash);
        find(inspection, text);
    }
}

static void look_at_blob(const struct blob_row *row, void *closure)
{
    char name[HASH_HEX + 1];
    text_to_hex(row->hash, HASH_BYTES, name);
    if (row->bytes == NULL) {
        look_at_file(closure, row, name);
    } else {
        look_at_row(closure, row, name);
    }
}

static void show_blobs(const struct inspection *inspection)
{
    fprintf(inspection->out, "payloads: %" PRId64 " rows and %" PRId64 " files, %" PRId64 " bytes, hashed\n",
            inspection->rows, inspection->files, inspection->bytes);
    if (inspection->stored > 0) {
        fprintf(inspection->out,
                "payloads: %" PRId64 " more are in the object store, and were not looked at\n",
                inspection->stored);
    }
    if (inspection->unseen > 0) {
        fprintf(inspection->out,
                "payloads: %" PRId64 " more are files of the state folder, and were not looked at\n",
                inspection->unseen);
    }
}

/* --- databases ------------------------------------------------------------------------------------------ */

static bool look_at_copy(struct inspection *inspection, const char *copy, struct err *err)
{
    const struct check_visitor visitor = {.counted = show_counts,
                                          .found = found,
                                          .looked = looked,
                                          .blob = look_at_blob,
                                          .closure = inspection};
    if (!check_database(copy, &visitor, err)) {
        return false;
    }
    show_blobs(inspection);
    return true;
}

/* Opens the copy once, as the controller does. */
static bool rehearse(const char *copy, struct err *err)
{
    struct store *store = store_open(copy, err);
    bool ok = store != NULL;
    store_close(store);
    return ok;
}

static bool copy_one(struct inspection *inspection, const char *from, const char *to, struct err *err)
{
    if (!copy_database(from, to, NULL, err)) {
        return false;
    }
    fprintf(inspection->out, "%s: every page can be read\n", from);
    return true;
}

/* Damage is a finding, not a failure of the inspection. */
static void look_at_database(struct inspection *inspection, const char *from, const char *folder)
{
    autofree char *copy = xprintf("%s/copy.db", folder);
    struct err err;
    if (!copy_one(inspection, from, copy, &err) || !rehearse(copy, &err) ||
        !look_at_copy(inspection, copy, &err)) {
        find_error(inspection, &err);
    }
}

static void look_at_tracking(struct inspection *inspection, const char *from, const char *folder)
{
    autofree char *copy = xprintf("%s/mlflow.db", folder);
    struct err err;
    if (access(from, F_OK) == 0 && !copy_one(inspection, from, copy, &err)) {
        find_error(inspection, &err);
    }
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static void look_at_manifest(struct inspection *inspection, const char *folder)
{
    struct err err;
    autofree char *manifest = xprintf("%s/" BACKUP_MANIFEST, folder);
    if (access(manifest, F_OK) != 0) {
        return;
    }
    if (backup_verify(folder, &err)) {
        fprintf(inspection->out, "%s: the files are what it says\n", manifest);
    } else {
        find_error(inspection, &err);
    }
}

static void look_at_folder(struct inspection *inspection, const char *path, const char *scratch)
{
    autofree char *database = xprintf("%s/" BACKUP_DATABASE, path);
    autofree char *tracking = xprintf("%s/mlflow.db", path);
    autofree char *blobs = xprintf("%s/blobs", path), *store = xprintf("%s/object-store", path);
    inspection->has_store = access(store, F_OK) == 0;
    if (access(blobs, F_OK) == 0) {
        inspection->blobs = blobs;
    }
    look_at_manifest(inspection, path);
    look_at_database(inspection, database, scratch);
    look_at_tracking(inspection, tracking, scratch);
    inspection->blobs = NULL;
}

bool inspect(const char *path, const char *blobs, FILE *out, int64_t *ret_findings, struct err *err)
{
    struct inspection inspection = {.out = out, .blobs = blobs};
    struct stat status;
    if (stat(path, &status) != 0) {
        return err_errno(err, "cannot look at %s", path);
    }
    bool folder = S_ISDIR(status.st_mode);
    autofree char *home = folder ? xstrdup(path) : file_folder_of(path);
    autofree char *scratch = xprintf("%s/checking.XXXXXX", home);
    if (mkdtemp(scratch) == NULL) {
        err_errno(err, "cannot make a folder in %s", home);
        return err_hint(err, "the databases are copied to be looked at: give it room and leave to write");
    }
    if (folder) {
        look_at_folder(&inspection, path, scratch);
    } else {
        look_at_database(&inspection, path, scratch);
    }
    *ret_findings = inspection.findings;
    if (inspection.findings == 0) {
        fprintf(out, "ok\n");
    } else {
        fprintf(out, "%" PRId64 " findings\n", inspection.findings);
    }
    return file_remove_tree(scratch, err);
}
