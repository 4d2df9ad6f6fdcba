/* SPDX-License-Identifier: Apache-2.0 */
/* Manages a folder of shared things. A thing stays while anybody uses it: each user holds a lock, which the
 * kernel frees however its holder ends. Others are removed when room is needed. A lookup takes microseconds.
 * Who makes a thing writes its marker last, or renames its folder then.
 *
 *   <hash>/      a thing, complete if it contains gpuctl.json
 *   <hash>.lock  its lock; the time of this file is the last use, and it stays when the thing goes
 *   <hash>.part/ one that is being made; its marker says how large it will be
 *   names/<name> a link to the thing that serves a need
 *   .trash/      what is being removed */
#include "agent/base/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/trash.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define MARKER "gpuctl.json"
#define NAMES  "names"

struct cache {
    char *folder, *noun;
    int64_t limit_bytes;
    bool (*is_whole)(const char *folder);
    struct trash *trash;
};

struct cache *cache_create(const struct cache_config *config, struct err *err)
{
    autofree char *trash = xprintf("%s/.trash", config->folder);
    autofree char *names = xprintf("%s/" NAMES, config->folder);
    struct trash *opened = file_make_directories(names, 0700, err) ? trash_create(trash, err) : NULL;
    if (opened == NULL) {
        return NULL;
    }
    struct cache *cache = xzalloc(sizeof *cache);
    *cache = (struct cache){.folder = xstrdup(config->folder),
                            .noun = xstrdup(config->noun),
                            .limit_bytes = config->limit_bytes,
                            .is_whole = config->is_whole,
                            .trash = opened};
    return cache;
}

void cache_destroy(struct cache *cache)
{
    if (cache != NULL) {
        trash_destroy(cache->trash);
        free(cache->folder);
        free(cache->noun);
        free(cache);
    }
}

const char *cache_folder(const struct cache *cache)
{
    return cache->folder;
}

void cache_discard(struct cache *cache, const char *path)
{
    trash_take(cache->trash, path);
}

bool cache_step(struct cache *cache)
{
    return trash_step(cache->trash);
}

/* That of a part is the thing's. */
char *cache_lock_path(const char *folder)
{
    size_t length = strlen(folder), tail = strlen(CACHE_PART);
    bool part = length > tail && strcmp(folder + length - tail, CACHE_PART) == 0;
    return xprintf("%.*s.lock", (int)(part ? length - tail : length), folder);
}

/* --- use ------------------------------------------------------------------------------------------------ */

/* The thing's description of itself; NULL if it is incomplete. */
static json_t *read_marker(const struct cache *cache, const char *folder)
{
    autofree char *path = xprintf("%s/" MARKER, folder);
    autofree char *bytes = NULL;
    size_t length;
    if ((cache->is_whole != NULL && !cache->is_whole(folder)) ||
        !file_read(path, LIMIT_MARKER_BYTES, &bytes, &length, NULL)) {
        return NULL;
    }
    return json_parse(bytes, length, NULL);
}

static int open_lock(const char *folder, int operation)
{
    autofree char *path = cache_lock_path(folder);
    autoclose int lock = open(path, O_RDWR | O_CLOEXEC);
    return lock >= 0 && flock(lock, operation | LOCK_NB) == 0 ? give_fd(&lock) : -1;
}

int cache_use(const struct cache *cache, const char *name, json_t **ret_marker, char **ret_folder)
{
    autofree char *link = xprintf("%s/" NAMES "/%s", cache->folder, name);
    autofree char *folder = realpath(link, NULL);
    autoclose int lock = folder != NULL ? open_lock(folder, LOCK_SH) : -1;
    json_t *marker = lock >= 0 ? read_marker(cache, folder) : NULL;
    if (marker == NULL) {
        return -1;
    }
    futimens(lock, NULL);
    *ret_marker = marker;
    *ret_folder = give(folder);
    return give_fd(&lock);
}

/* --- making --------------------------------------------------------------------------------------------- */

int cache_lock(const char *folder, struct err *err)
{
    autofree char *path = cache_lock_path(folder);
    autoclose int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        err_errno(err, "%s", path);
        return -1;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        err_set(err, ERR_CONFLICT, "an earlier agent has not ended yet with %s", folder);
        return -1;
    }
    futimens(lock, NULL);
    return give_fd(&lock);
}

bool cache_mark(const char *folder, const json_t *marker, struct err *err)
{
    autofree char *path = xprintf("%s/" MARKER, folder);
    autofree char *text = json_text(marker);
    return (strlen(text) <= LIMIT_MARKER_BYTES ||
            err_set(err, ERR_TOO_LARGE, "its description is longer than %lld bytes", LIMIT_MARKER_BYTES)) &&
           file_replace(path, text, strlen(text), 0600, err);
}

bool cache_link(const struct cache *cache, const char *name, const char *folder, struct err *err)
{
    autofree char *link = xprintf("%s/" NAMES "/%s", cache->folder, name);
    autofree char *fresh = xprintf("%s/" NAMES "/%s.new", cache->folder, name);
    unlink(fresh); /* of an agent that was killed here */
    return (symlink(folder, fresh) == 0 && rename(fresh, link) == 0) || err_errno(err, "%s", link);
}

/* --- room ----------------------------------------------------------------------------------------------- */

/* Moves the folder to the trash, unless it is in use. */
static bool throw_away(struct cache *cache, const char *folder)
{
    autoclose int lock = open_lock(folder, LOCK_EX);
    if (lock < 0) {
        return false;
    }
    trash_take(cache->trash, folder);
    return access(folder, F_OK) != 0;
}

/* A complete thing, or a part. */
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

static void add_entry(struct cache *cache, const char *name, struct entries *entries)
{
    autofree char *folder = xprintf("%s/%s", cache->folder, name);
    autofree char *lock = cache_lock_path(folder);
    autojson json_t *marker = read_marker(cache, folder);
    struct stat status = {0};
    if (marker == NULL) {
        throw_away(cache, folder);
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

static bool is_thing(const char *name)
{
    size_t length = strlen(name);
    return length == HASH_HEX ||
           (length == HASH_HEX + strlen(CACHE_PART) && strcmp(name + HASH_HEX, CACHE_PART) == 0);
}

/* Sorted by last use, the oldest first. */
static struct entries list_entries(struct cache *cache)
{
    struct entries entries = {0};
    autonames struct file_names names;
    file_list(cache->folder, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count; i++) {
        if (is_thing(names.items[i])) {
            add_entry(cache, names.items[i], &entries);
        }
    }
    if (entries.count > 0) {
        qsort(entries.items, entries.count, sizeof *entries.items, by_use);
    }
    return entries;
}

int64_t cache_missing_bytes(const struct cache *cache)
{
    struct file_disk disk;
    if (!file_disk(cache->folder, &disk)) {
        return 0;
    }
    return disk.free_bytes < ENVIRONMENTS_FREE_BYTES ? ENVIRONMENTS_FREE_BYTES - disk.free_bytes : 0;
}

/* Removes links that lead nowhere. */
static void drop_names(const struct cache *cache)
{
    autofree char *names = xprintf("%s/" NAMES, cache->folder);
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

int64_t cache_make_room(struct cache *cache, int64_t more_bytes)
{
    struct entries entries = list_entries(cache);
    int64_t missing = cache_missing_bytes(cache);
    int64_t above = entries.total_bytes + more_bytes - cache->limit_bytes;
    int64_t wanted_bytes = missing > above ? missing : above;
    for (size_t i = 0; i < entries.count; i++) {
        const struct entry *entry = &entries.items[i];
        if (wanted_bytes > 0 && throw_away(cache, entry->folder)) {
            wanted_bytes -= entry->size_bytes;
            above -= entry->size_bytes;
            log_info("cache entry dropped", "noun=%s folder=%s size_bytes=%lld total_bytes=%lld", cache->noun,
                     entry->folder, (long long)entry->size_bytes, (long long)entries.total_bytes);
        }
        free(entry->folder);
    }
    free(entries.items);
    drop_names(cache);
    return above > 0 ? above : 0;
}
