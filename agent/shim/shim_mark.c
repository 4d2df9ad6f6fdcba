/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the moments that ranks report by name in lines to rank.sock, such as "first all-reduce". It keeps the
 * first moment of each of the first LIMIT_MARKS names of this node. A name must fit a line of the exit
 * record; the file ignores other names. */
#include "agent/shim/shim.h"

#include <string.h>

/* The same rule as in proto/wire/timing.c, which is not linked in here. */
static bool name_fits(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (name[i] < ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\') {
            return false;
        }
    }
    return length > 0 && length <= LIMIT_MARK_NAME;
}

static bool is_known(const struct shim *shim, const struct line *line)
{
    for (size_t i = 0; i < shim->mark_count; i++) {
        const char *name = shim->marks[i].name;
        if (strlen(name) == line->mark_length && memcmp(name, line->mark, line->mark_length) == 0) {
            return true;
        }
    }
    return false;
}

static void mark_take(struct shim *shim, const struct line *line)
{
    const struct rank *rank = line->mark != NULL ? line_rank(shim, line) : NULL;
    if (rank == NULL || shim->mark_count == LIMIT_MARKS || !name_fits(line->mark, line->mark_length) ||
        is_known(shim, line)) {
        return;
    }
    struct mark *mark = &shim->marks[shim->mark_count++];
    bool said =
        line->rank >= 0 && line->rank < LIMIT_GPUS; /* the processes of a launcher have ranks of their own */
    mark->rank = said ? (int)line->rank : shim->launch.ranks[rank - shim->ranks].number;
    mark->at_us = shim_boot_us();
    memcpy(mark->name, line->mark, line->mark_length); /* the rest is zero */
}

void mark_receive(struct shim *shim, const char *bytes, size_t length)
{
    line_each(shim, bytes, length, "\"mark\"", mark_take);
}
