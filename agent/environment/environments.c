/* SPDX-License-Identifier: Apache-2.0 */
/* Manages the folder of environments. An environment stays while a job, a staging or a builder of any agent
 * uses it: each user holds a lock, which the kernel frees however its holder ends. Others are removed when
 * room is needed. A lookup takes microseconds. builder.c builds environments.
 *
 *   <hash>/, <hash>.lock    an environment, complete if it contains gpuctl.json; the time of the lock file
 *                           is its last use, and the lock file stays when the environment goes
 *   names/<name>            a link to the environment that serves a need
 *   .pip-cache, .trash */
#include "agent/environment/environments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/base/trash.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define MARKER         "gpuctl.json"
#define NAMES          "names"
#define PIP_CACHE      ".pip-cache"
#define DEFAULT_PYTHON "python3"

struct environments {
    char *folder;
    char *python; /* or NULL */
    int64_t limit_bytes;
    struct trash *trash;
};

struct environments *environments_create(const char *folder, const char *python, int64_t limit_bytes,
                                         struct err *err)
{
    autofree char *trash = xprintf("%s/.trash", folder);
    autofree char *names = xprintf("%s/" NAMES, folder);
    struct trash *opened = file_make_directories(names, 0700, err) ? trash_create(trash, err) : NULL;
    if (opened == NULL) {
        return NULL;
    }
    struct environments *environments = xzalloc(sizeof *environments);
    *environments = (struct environments){.folder = xstrdup(folder),
                                          .python = python != NULL ? xstrdup(python) : NULL,
                                          .limit_bytes = limit_bytes,
                                          .trash = opened};
    return environments;
}

void environments_destroy(struct environments *environments)
{
    if (environments != NULL) {
        trash_destroy(environments->trash);
        free(environments->python);
        free(environments->folder);
        free(environments);
    }
}

const char *environments_folder(const struct environments *environments)
{
    return environments->folder;
}

bool environments_step(struct environments *environments)
{
    return trash_step(environments->trash);
}

char *environment_lock_path(const char *folder)
{
    return xprintf("%s.lock", folder);
}

/* --- names ---------------------------------------------------------------------------------------------- */

static bool is_program(const char *path, struct stat *ret_status)
{
    return stat(path, ret_status) == 0 && S_ISREG(ret_status->st_mode) && access(path, X_OK) == 0;
}

/* Searches PATH as execvp does. */
static char *find_program(const char *name, struct stat *ret_status)
{
    const char *variable = getenv("PATH");
    autofree char *path = xstrdup(variable != NULL ? variable : "/usr/local/bin:/usr/bin:/bin");
    if (strchr(name, '/') != NULL) {
        return is_program(name, ret_status) ? xstrdup(name) : NULL;
    }
    char *rest = path;
    for (char *folder; (folder = strsep(&rest, ":")) != NULL;) {
        autofree char *found = xprintf("%s/%s", folder, name);
        if (folder[0] == '/' && is_program(found, ret_status)) {
            return give(found);
        }
    }
    return NULL;
}

bool environment_name(const struct environments *environments, const struct environment_need *need,
                      char **ret_name, char **ret_interpreter, struct err *err)
{
    const char *agents = environments->python != NULL ? environments->python : DEFAULT_PYTHON;
    const char *python = need->python != NULL ? need->python : agents;
    struct stat status;
    char *interpreter = find_program(python, &status);
    if (interpreter == NULL) {
        err_set(err, ERR_IO, "the node has no Python at %s: install it there, or %s", python,
                need->python != NULL ? "name another for the job" : "start gpuagent with --python");
        return false;
    }
    autofree char *facts =
        xprintf("%s\n%s\n%s\n%llu %llu %lld %lld.%09ld\n", need->requirements,
                need->python_version != NULL ? need->python_version : "", interpreter,
                (unsigned long long)status.st_dev, (unsigned long long)status.st_ino,
                (long long)status.st_size, (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    char *name = xalloc(HASH_HEX + 1);
    hash_hex(facts, strlen(facts), name);
    *ret_name = name;
    *ret_interpreter = interpreter;
    return true;
}

/* --- use ------------------------------------------------------------------------------------------------ */

/* The environment's description of itself; NULL if the environment is incomplete. */
static json_t *read_marker(const char *folder)
{
    autofree char *path = xprintf("%s/" MARKER, folder);
    autofree char *python = xprintf("%s/bin/python", folder);
    autofree char *bytes = NULL;
    size_t length;
    if (access(python, X_OK) != 0 || !file_read(path, LIMIT_MARKER_BYTES, &bytes, &length, NULL)) {
        return NULL;
    }
    return json_parse(bytes, length, NULL);
}

/* Whether the package folders of the node's own Python are unchanged: their time changes when a package comes
 * or goes. */
static bool is_fresh(const json_t *marker)
{
    const char *path;
    json_t *time;
    json_object_foreach (json_object_get(marker, "folders"), path, time) {
        struct stat status;
        if (stat(path, &status) != 0 ||
            status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec != json_integer_value(time)) {
            return false;
        }
    }
    return true;
}

static int open_lock(const char *folder, int operation)
{
    autofree char *path = environment_lock_path(folder);
    autoclose int lock = open(path, O_RDWR | O_CLOEXEC);
    return lock >= 0 && flock(lock, operation | LOCK_NB) == 0 ? give_fd(&lock) : -1;
}

int environment_use(const struct environments *environments, const char *name, bool fresh, char **ret_folder,
                    struct err *err)
{
    autofree char *link = xprintf("%s/" NAMES "/%s", environments->folder, name);
    autofree char *folder = realpath(link, NULL);
    autoclose int lock = folder != NULL ? open_lock(folder, LOCK_SH) : -1;
    autojson json_t *marker = lock >= 0 ? read_marker(folder) : NULL;
    if (marker == NULL || (fresh && !is_fresh(marker))) {
        err_set(err, ERR_NOT_FOUND, "the environment is gone from this node, and is built again");
        return -1;
    }
    futimens(lock, NULL);
    *ret_folder = give(folder);
    return give_fd(&lock);
}

/* --- room ----------------------------------------------------------------------------------------------- */

/* Moves the folder to the trash, unless it is in use. */
static bool throw_away(struct environments *environments, const char *folder)
{
    autoclose int lock = open_lock(folder, LOCK_EX);
    if (lock < 0) {
        return false;
    }
    trash_take(environments->trash, folder);
    return access(folder, F_OK) != 0;
}

/* A complete environment. */
struct entry {
    char *folder; /* owned */
    int64_t size_bytes;
    struct timespec used;
};

struct entries {
    struct entry *items;
    size_t count;
    int64_t total_bytes;
};

static void add_entry(struct environments *environments, const char *name, struct entries *entries)
{
    autofree char *folder = xprintf("%s/%s", environments->folder, name);
    autofree char *lock = environment_lock_path(folder);
    autojson json_t *marker = read_marker(folder);
    struct stat status = {0};
    if (marker == NULL) {
        throw_away(environments, folder);
        return;
    }
    stat(lock, &status);
    int64_t size_bytes = json_integer_value(json_object_get(marker, "size_bytes"));
    entries->items = xrealloc(entries->items, (entries->count + 1) * sizeof *entries->items);
    entries->items[entries->count++] = (struct entry){give(folder), size_bytes, status.st_mtim};
    entries->total_bytes += size_bytes;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *one = &((const struct entry *)a)->used, *other = &((const struct entry *)b)->used;
    if (one->tv_sec != other->tv_sec) {
        return one->tv_sec < other->tv_sec ? -1 : 1;
    }
    return (one->tv_nsec > other->tv_nsec) - (one->tv_nsec < other->tv_nsec);
}

/* Sorted by last use, the oldest first. */
static struct entries list_entries(struct environments *environments)
{
    struct entries entries = {0};
    autonames struct file_names names;
    file_list(environments->folder, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count; i++) {
        if (strlen(names.items[i]) == HASH_HEX) {
            add_entry(environments, names.items[i], &entries);
        }
    }
    if (entries.count > 0) {
        qsort(entries.items, entries.count, sizeof *entries.items, by_use);
    }
    return entries;
}

/* How many bytes are missing on the disk; 0 if there is enough space. */
static int64_t missing_bytes(const struct environments *environments)
{
    struct statvfs disk;
    if (statvfs(environments->folder, &disk) != 0) {
        return 0;
    }
    int64_t free_bytes = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    return free_bytes < ENVIRONMENTS_FREE_BYTES ? ENVIRONMENTS_FREE_BYTES - free_bytes : 0;
}

/* Removes links that lead nowhere. */
static void drop_names(const struct environments *environments)
{
    autofree char *names = xprintf("%s/" NAMES, environments->folder);
    DIR *listing = opendir(names);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (faccessat(dirfd(listing), entry->d_name, F_OK, 0) != 0 && errno == ENOENT) {
            unlinkat(dirfd(listing), entry->d_name, 0);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
}

void environments_make_room(struct environments *environments)
{
    struct entries entries = list_entries(environments);
    int64_t missing = missing_bytes(environments), above = entries.total_bytes - environments->limit_bytes;
    int64_t wanted_bytes = missing > above ? missing : above;
    if (missing > 0) {
        autofree char *cache = xprintf("%s/" PIP_CACHE, environments->folder);
        trash_take(environments->trash, cache); /* pip can fetch its files again */
    }
    for (size_t i = 0; i < entries.count; i++) {
        const struct entry *entry = &entries.items[i];
        if (wanted_bytes > 0 && throw_away(environments, entry->folder)) {
            wanted_bytes -= entry->size_bytes;
            log_info("environment dropped", "folder=%s size_bytes=%lld total_bytes=%lld", entry->folder,
                     (long long)entry->size_bytes, (long long)entries.total_bytes);
        }
        free(entry->folder);
    }
    free(entries.items);
    drop_names(environments);
}
