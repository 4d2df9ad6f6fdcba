/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledged checkpoints: a rank sends a line to rank.sock to say that it has saved its work, so that
 * nobody has to wait for it any longer. Only lines since the last signal of the kill ladder count. A launcher
 * counts once each process that it started has sent one. shim_line.c parses the lines; shim_kill.c shortens
 * the wait. */
#include "agent/shim/shim.h"

#include <string.h>

/* Notes a line of one of the processes that the node's only rank has started; true once all have sent one. */
static bool voice_note(struct shim *shim, const struct line *line)
{
    size_t count = 0;
    shim->voices[line->local_rank] = true;
    for (int64_t i = 0; i < line->local_world; i++) {
        count += shim->voices[i];
    }
    return count == (size_t)line->local_world;
}

static void checkpoint_take(struct shim *shim, const struct line *line)
{
    struct rank *rank = line->checkpoint ? line_rank(shim, line) : NULL;
    if (rank == NULL) {
        return;
    }
    shim->checkpoint_ms = shim_wall_ms();
    bool one_of_many = shim->launch.rank_count == 1 && line->local_world > 1 &&
                       line->local_world <= LIMIT_NODE_DEVICES && line->local_rank >= 0 &&
                       line->local_rank < line->local_world;
    rank->saved = rank->saved || !one_of_many || voice_note(shim, line);
}

void checkpoint_receive(struct shim *shim, const char *bytes, size_t length)
{
    line_each(shim, bytes, length, "\"checkpoint\"", checkpoint_take);
}

void checkpoint_forget(struct shim *shim)
{
    metrics_receive(shim); /* lines in the socket were sent before the signal */
    memset(shim->voices, 0, sizeof shim->voices);
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        shim->ranks[i].saved = false;
    }
}

bool checkpoint_by_all(const struct shim *shim)
{
    bool any = false;
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->ranks[i].state == RANK_LIVE) {
            if (!shim->ranks[i].saved) {
                return false;
            }
            any = true;
        }
    }
    return any;
}
