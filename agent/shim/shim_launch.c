/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the launch file, and builds the environment of a rank: the entries for all ranks, then those for this
 * rank, then those that the start adds. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

/* Room for all of the file, and for one byte more than a launch file may have: large rooms cost page faults.
 */
static size_t room_for(int fd)
{
    struct stat status;
    bool small = fstat(fd, &status) == 0 && status.st_size < LIMIT_LAUNCH_BYTES;
    return (small ? (size_t)status.st_size : LIMIT_LAUNCH_BYTES) + 1;
}

static ssize_t bytes_read(int fd, char *bytes, size_t room)
{
    ssize_t got, size = 0;
    while ((got = read(fd, bytes + size, room - (size_t)size)) > 0) {
        size += got;
    }
    return got < 0 ? -1 : size;
}

/* Both files as one: the secrets first, so that what the launch file says has precedence. */
bool launch_read(struct launch *launch, int secrets, struct why *why)
{
    struct err err;
    autoclose int fd = open(SHIM_LAUNCH_FILE, O_RDONLY | O_CLOEXEC);
    size_t first = secrets >= 0 ? room_for(secrets) : 0;
    size_t room = first + (fd >= 0 ? room_for(fd) : 1);
    autofree char *bytes = xalloc(room);
    ssize_t begin = secrets >= 0 ? bytes_read(secrets, bytes, first) : 0;
    ssize_t size = fd >= 0 && begin >= 0 ? bytes_read(fd, bytes + begin, room - (size_t)begin) : -1;
    if (size < 0) {
        return why_set(why, "launch file: %s", strerror(errno));
    }
    struct launch read = {0};
    if (!launch_parse(give(bytes), (size_t)(begin + size), &read, &err)) {
        return why_set(why, "%s", err.text);
    }
    if (read.secret_count != (size_t)read.secrets_wanted) {
        why_set(why, "%zu secrets came with the order, not %lld", read.secret_count,
                (long long)read.secrets_wanted);
        launch_finish(&read);
        return false;
    }
    *launch = read;
    return true;
}

/* --- secrets -------------------------------------------------------------------------------------------- */

/* The value of a file; the caller wipes it. */
static bool secret_decode(const struct launch_secret *secret, uint8_t **ret_bytes, size_t *ret_length)
{
    const char *base64 = strchr(secret->pair, '=') + 1;
    return text_from_base64(base64, strlen(base64), ret_bytes, ret_length);
}

static void secret_wipe(uint8_t *bytes, size_t length)
{
    explicit_bzero(bytes, length);
    free(bytes);
}

void secrets_take(struct shim *shim)
{
    const struct launch *launch = &shim->launch;
    if (launch->secret_count == 0) {
        return;
    }
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    shim->mask = mask_create();
    for (size_t i = 0; i < launch->secret_count; i++) {
        const struct launch_secret *secret = &launch->secrets[i];
        uint8_t *bytes;
        size_t length;
        if (!secret->file) {
            const char *value = strchr(secret->pair, '=') + 1;
            mask_add(shim->mask, value, strlen(value));
        } else if (secret_decode(secret, &bytes, &length)) {
            mask_add(shim->mask, bytes, length);
            secret_wipe(bytes, length);
        }
    }
}

/* Of the ranks' user, who may read it and nothing else; the folder lets pass who knows a name. */
static bool secret_write(const struct launch *launch, const struct launch_secret *secret, struct why *why)
{
    uint8_t *bytes;
    size_t length;
    autofree char *path =
        xprintf("%s/%.*s", SHIM_SECRETS_FOLDER, (int)strcspn(secret->pair, "="), secret->pair);
    if (!secret_decode(secret, &bytes, &length)) {
        return why_set(why, "secret file %s: it is not base64", path);
    }
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    bool written = file >= 0 && write(file, bytes, length) == (ssize_t)length &&
                   (launch->uid < 0 || fchown(file, (uid_t)launch->uid, (gid_t)launch->gid) == 0);
    secret_wipe(bytes, length);
    return written || why_set(why, "secret file %s: %s", path, strerror(errno));
}

bool secrets_store(const struct shim *shim, struct why *why)
{
    const struct launch *launch = &shim->launch;
    bool made = false;
    for (size_t i = 0; i < launch->secret_count; i++) {
        if (!launch->secrets[i].file) {
            continue;
        }
        if (!made && mkdir(SHIM_SECRETS_FOLDER, 0711) != 0) {
            return why_set(why, "folder %s: %s", SHIM_SECRETS_FOLDER, strerror(errno));
        }
        made = true;
        if (!secret_write(launch, &launch->secrets[i], why)) {
            return false;
        }
    }
    return true;
}

void secrets_remove(const struct shim *shim)
{
    const struct launch *launch = &shim->launch;
    for (size_t i = 0; i < launch->secret_count; i++) {
        const char *pair = launch->secrets[i].pair;
        autofree char *path = xprintf("%s/%.*s", SHIM_SECRETS_FOLDER, (int)strcspn(pair, "="), pair);
        if (launch->secrets[i].file) {
            unlink(path);
        }
    }
    if (launch->secret_count > 0) {
        rmdir(SHIM_SECRETS_FOLDER);
    }
}

void secrets_forget(struct shim *shim)
{
    if (shim->mask == NULL) {
        return;
    }
    mask_destroy(shim->mask);
    shim->mask = NULL;
    for (size_t i = 0; i < shim->launch.secret_count; i++) {
        char *pair = (char *)(uintptr_t)shim->launch.secrets[i].pair;
        explicit_bzero(pair, strlen(pair));
    }
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* --- the environment ------------------------------------------------------------------------------------ */

/* An environment that is being made, with the lengths of the names: most names differ by their lengths. */
struct entries {
    char **items;
    size_t *lengths;
    size_t count;
};

/* The position of the entry with this name, or count. */
static size_t entry_find(const struct entries *entries, const char *name, size_t length)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->lengths[i] == length && memcmp(entries->items[i], name, length) == 0) {
            return i;
        }
    }
    return entries->count;
}

/* Adds the entry. If its name is there already, the new one replaces it, or with `keep` the old one stays. */
static void entry_put(struct entries *entries, char *entry, bool keep)
{
    const size_t length = strcspn(entry, "=");
    const size_t at = entry_find(entries, entry, length);
    if (at == entries->count) {
        entries->lengths[entries->count++] = length;
        entries->items[at] = entry;
    } else if (!keep) {
        entries->items[at] = entry;
    }
}

char **launch_environment(const struct launch *launch, size_t rank, char *const *added)
{
    const struct launch_rank *own = &launch->ranks[rank];
    size_t added_count = 0;
    while (added[added_count] != NULL) {
        added_count++;
    }
    const size_t most = launch->env_count + own->env_count + added_count;
    autofree size_t *lengths = xalloc((most + 1) * sizeof *lengths);
    struct entries entries = {.items = xalloc((most + 2) * sizeof *entries.items), .lengths = lengths};
    for (size_t i = 0; i < launch->env_count; i++) {
        entry_put(&entries, launch->env[i], false);
    }
    for (size_t i = 0; i < own->env_count; i++) {
        entry_put(&entries, own->env[i], false);
    }
    for (size_t i = 0; i < added_count; i++) {
        entry_put(&entries, added[i], true);
    }
    entries.items[entries.count] = NULL;
    entries.items[entries.count + 1] = NULL; /* room for one more */
    return entries.items;
}
