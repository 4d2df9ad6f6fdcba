/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledged checkpoints: a rank says in a line to rank.sock that it has saved what it needs to go on
 * later, and then nobody has to wait for it. It promises that a rank counts only for what came since the last
 * signal of the kill ladder, and that a launcher counts when each process that it started has spoken. What
 * a line says is shim_line.c's, what follows for the attempt shim_kill.c's. */
#include "agent/shim/shim.h"

#include <string.h>

/* One of the processes that the node's only rank has started; true when all have spoken. */
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
    metrics_receive(shim); /* what is in the socket was said before */
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
