/* SPDX-License-Identifier: Apache-2.0 */
/* Names the automatic backups and removes old ones. It removes only what it has made, and a backup has its
 * name only when it is complete. backup.c makes the content. */
#include "daemon/backup/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"

#define ARRIVING ".arriving"
#define STAMP    "20261121T093000Z"

/* --- names ---------------------------------------------------------------------------------------------- */

#define A_SECOND 99 /* at most so many backups in one second */

static bool is_taken(const char *shelf, const char *stamp, int number, char name[SHELF_NAME_BYTES])
{
    char suffix[16] = "";
    if (number > 1) {
        snprintf(suffix, sizeof suffix, "-%02d", number);
    }
    snprintf(name, SHELF_NAME_BYTES, "%.16s%s", stamp, suffix);
    autofree char *path = xprintf("%s/%s", shelf, name);
    return access(path, F_OK) == 0 || errno != ENOENT;
}

/* Chooses a name after all names of this second, because earlier backups may have been removed. Names sort by
 * time. */
static bool choose_name(const char *shelf, char name[SHELF_NAME_BYTES])
{
    char stamp[SHELF_NAME_BYTES];
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm utc;
    int last = A_SECOND;
    gmtime_r(&now, &utc);
    if (strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc) == 0) {
        return false;
    }
    while (last > 0 && !is_taken(shelf, stamp, last, name)) {
        last--;
    }
    return last < A_SECOND && !is_taken(shelf, stamp, last + 1, name);
}

static bool is_name(const char *name)
{
    static const char stamp[] = STAMP;
    for (size_t i = 0; i < sizeof stamp - 1; i++) {
        bool digit = stamp[i] >= '0' && stamp[i] <= '9';
        if (digit ? name[i] < '0' || name[i] > '9' : name[i] != stamp[i]) {
            return false;
        }
    }
    const char *rest = name + sizeof stamp - 1;
    return *rest == '\0' || (*rest == '-' && strspn(rest + 1, "0123456789") == 2 && rest[3] == '\0');
}

/* --- listing -------------------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
    return strcmp(((const struct shelved *)b)->name, ((const struct shelved *)a)->name);
}

/* A backup that cannot be read does not count as one. */
static bool read_entry(const char *shelf, const char *name, struct shelved *ret_shelved)
{
    autofree char *folder = xprintf("%s/%s", shelf, name);
    struct err err;
    *ret_shelved = (struct shelved){0};
    snprintf(ret_shelved->name, sizeof ret_shelved->name, "%.*s", SHELF_NAME_BYTES - 1, name);
    if (backup_read(folder, &ret_shelved->backup, &err)) {
        return true;
    }
    log_warning("backup unreadable", "folder=%s text=\"%s\"", folder, err.text);
    return false;
}

bool shelf_list(const char *shelf, struct shelved **ret_items, size_t *ret_count, struct err *err)
{
    DIR *listing = opendir(shelf);
    struct shelved *items = NULL;
    size_t count = 0;
    if (listing == NULL && errno != ENOENT) {
        return err_errno(err, "cannot list %s", shelf);
    }
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        struct shelved found;
        if (is_name(entry->d_name) && read_entry(shelf, entry->d_name, &found)) {
            items = xrealloc(items, (count + 1) * sizeof *items);
            items[count++] = found;
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
    if (count > 0) {
        qsort(items, count, sizeof *items, newest_first);
    }
    *ret_items = items;
    *ret_count = count;
    return true;
}

/* --- adding and removing -------------------------------------------------------------------------------- */

/* Removes unfinished backups of a controller that was killed. */
static void remove_unfinished(const char *shelf)
{
    autonames struct file_names names;
    file_list(shelf, &names, NULL); /* folders that cannot be listed stay */
    for (size_t i = 0; i < names.count; i++) {
        size_t length = strlen(names.items[i]), ending = sizeof ARRIVING - 1;
        autofree char *stem = xstrndup(names.items[i], length > ending ? length - ending : 0);
        if (length > ending && strcmp(names.items[i] + length - ending, ARRIVING) == 0 && is_name(stem)) {
            autofree char *folder = xprintf("%s/%s", shelf, names.items[i]);
            file_remove_tree(folder, NULL);
        }
    }
}

/* The wall clock may have been set back, so the new backup need not be first in the list. */
static bool remove_oldest(const char *shelf, int64_t keep, const char *fresh, struct err *err)
{
    autofree struct shelved *items = NULL;
    size_t count;
    int64_t kept = 1;
    if (!shelf_list(shelf, &items, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        autofree char *folder = xprintf("%s/%s", shelf, items[i].name);
        bool stays = strcmp(items[i].name, fresh) == 0 || kept++ < keep;
        if (!stays && !file_remove_tree(folder, err)) {
            return false;
        }
    }
    return true;
}

bool shelf_add(const char *shelf, const char *state, int64_t keep, const struct copy_watch *watch,
               struct shelved *ret_shelved, struct err *err)
{
    struct shelved fresh = {0};
    if (!file_make_directories(shelf, 0700, err)) {
        return false;
    }
    remove_unfinished(shelf);
    if (!choose_name(shelf, fresh.name)) {
        return err_set(err, ERR_IO, "there is no free name for a backup in %s", shelf);
    }
    autofree char *folder = xprintf("%s/%s", shelf, fresh.name);
    if (!backup_make(state, folder, watch, &fresh.backup, err)) {
        return false;
    }
    *ret_shelved = fresh;
    return remove_oldest(shelf, keep, fresh.name, err);
}
