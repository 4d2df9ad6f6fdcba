/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the launch file, and builds the environment of a rank: the entries for all ranks, then those for this
 * rank, then those that the start adds. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

bool launch_read(struct launch *launch, struct why *why)
{
    struct err err;
    autoclose int fd = open(SHIM_LAUNCH_FILE, O_RDONLY | O_CLOEXEC);
    size_t room = fd >= 0 ? room_for(fd) : 1;
    autofree char *bytes = xalloc(room);
    ssize_t size = fd >= 0 ? bytes_read(fd, bytes, room) : -1;
    if (size < 0) {
        return why_set(why, "launch file: %s", strerror(errno));
    }
    return launch_parse(give(bytes), (size_t)size, launch, &err) || why_set(why, "%s", err.text);
}

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
