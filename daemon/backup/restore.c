/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a state folder's databases by those of a backup. An old database never meets a new log or the
 * other way round, and nothing is destroyed. A restore that is interrupted at any instant either has not
 * begun or continues at the next start.
 *
 * All new files are first prepared in STATE/restoring.new: verified, marked and synced. The rename to
 * STATE/restoring is the decision: from then on the restore is only carried out, file by file, and each step
 * can be repeated. A replaced file is moved aside, with its log, before the new one takes its name. */
#include "daemon/backup/restore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/database/copy.h"
#include "daemon/store/incarnation.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

#define READY    "restoring"
#define ARRIVING READY ".new"
#define REPLACED "replaced.path" /* within READY: the name of the folder for replaced files */

static bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

/* --- carrying out --------------------------------------------------------------------------------------- */

static bool set_aside(const char *state, const char *aside, const char *name, const char *suffix,
                      struct err *err)
{
    autofree char *from = xprintf("%s/%s%s", state, name, suffix);
    autofree char *to = xprintf("%s/%s%s", aside, name, suffix);
    return rename(from, to) == 0 || errno == ENOENT || err_errno(err, "cannot move %s to %s", from, aside);
}

/* Moves the log together with its database, and durably, before another database gets the name. */
static bool exchange(const char *state, const char *ready, const char *aside, const char *name,
                     struct err *err)
{
    autofree char *from = xprintf("%s/%s", ready, name);
    autofree char *to = xprintf("%s/%s", state, name);
    if (!is_there(from)) {
        return true;
    }
    return set_aside(state, aside, name, "", err) && set_aside(state, aside, name, "-wal", err) &&
           set_aside(state, aside, name, "-shm", err) && file_sync_folder(aside, err) &&
           file_sync_folder(state, err) &&
           (rename(from, to) == 0 || err_errno(err, "cannot move %s into its place", from)) &&
           file_sync_folder(state, err);
}

/* Renames the folder first: under the other name it no longer means a restore, however much of it is
 * removed. */
static bool leave(const char *state, const char *ready, struct err *err)
{
    autofree char *arriving = xprintf("%s/" ARRIVING, state);
    return file_remove_tree(arriving, err) &&
           (rename(ready, arriving) == 0 || err_errno(err, "cannot rename %s", ready)) &&
           file_sync_folder(state, err) && file_remove_tree(arriving, err);
}

static bool carry_out(const char *state, const char *ready, char **ret_replaced, struct err *err)
{
    autofree char *note = xprintf("%s/" REPLACED, ready);
    autofree char *name = NULL;
    if (!file_read(note, 64, &name, NULL, err)) {
        return false;
    }
    autofree char *aside = xprintf("%s/%s", state, name);
    bool ok = file_make_directories(aside, 0700, err) && file_give_to_owner_of(state, aside, err);
    for (const struct backup_part *part = backup_parts; ok && part->name != NULL; part++) {
        ok = exchange(state, ready, aside, part->name, err);
    }
    if (!ok || !leave(state, ready, err)) {
        return false;
    }
    *ret_replaced = give(aside);
    return true;
}

bool restore_finish(const char *state, bool *ret_finished, struct err *err)
{
    autofree char *ready = xprintf("%s/" READY, state);
    autofree char *replaced = NULL;
    *ret_finished = is_there(ready);
    return !*ret_finished || carry_out(state, ready, &replaced, err);
}

/* --- preparing ------------------------------------------------------------------------------------------ */

static bool lay_parts(const char *from, const char *arriving, struct err *err)
{
    bool ok = backup_verify(from, err);
    for (const struct backup_part *part = backup_parts; ok && part->name != NULL; part++) {
        autofree char *source = xprintf("%s/%s", from, part->name);
        autofree char *target = xprintf("%s/%s", arriving, part->name);
        ok = !is_there(source) || (part->database ? copy_database(source, target, NULL, err)
                                                  : file_copy(source, target, 0600, err));
    }
    return ok;
}

static bool lay(const char *from, const char *arriving, struct backup *ret_backup, struct err *err)
{
    struct stat status;
    if (stat(from, &status) != 0) {
        return err_errno(err, "cannot find the backup %s", from);
    }
    *ret_backup = (struct backup){0};
    if (S_ISDIR(status.st_mode)) {
        return backup_read(from, ret_backup, err) && lay_parts(from, arriving, err);
    }
    autofree char *target = xprintf("%s/" BACKUP_DATABASE, arriving);
    return copy_database(from, target, NULL, err);
}

/* Chooses an unused name for the folder of replaced files, and notes it beside the new files. */
static bool note_replaced(const char *state, const char *arriving, struct err *err)
{
    autofree char *note = xprintf("%s/" REPLACED, arriving);
    char id[ID_LENGTH + 1];
    uint8_t random[10];
    random_fill(random, sizeof random);
    text_id_from_bytes(random, id);
    autofree char *name = xprintf("replaced-%s", id);
    return file_replace(note, name, strlen(name), 0600, err);
}

static bool mark(const char *state, const char *arriving, int64_t taken_ms, struct err *err)
{
    autofree char *database = xprintf("%s/" BACKUP_DATABASE, arriving);
    autofree char *place = xprintf("%s/" BACKUP_DATABASE, state);
    uint32_t chance;
    random_fill(&chance, sizeof chance);
    return incarnation_leap(database, place, taken_ms, chance, err);
}

bool restore_run(const char *from, const char *state, char **ret_replaced, struct err *err)
{
    autofree char *ready = xprintf("%s/" READY, state);
    autofree char *arriving = xprintf("%s/" ARRIVING, state);
    struct backup backup;
    bool finished;
    if (!restore_finish(state, &finished, err) || !file_remove_tree(arriving, err) ||
        !file_make_directories(arriving, 0700, err)) {
        return false;
    }
    if (lay(from, arriving, &backup, err) && mark(state, arriving, backup.taken_ms, err) &&
        note_replaced(state, arriving, err) && file_give_to_owner_of(state, arriving, err) &&
        file_sync_folder(arriving, err) &&
        (rename(arriving, ready) == 0 || err_errno(err, "cannot make %s", ready)) &&
        file_sync_folder(state, err)) {
        return carry_out(state, ready, ret_replaced, err);
    }
    file_remove_tree(arriving, NULL);
    return false;
}
