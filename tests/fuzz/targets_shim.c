/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks, programs of people, send to their shim. */
#include <string.h>

#include "agent/shim/shim.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 3 };

/* shim_line.c needs it of another file of the shim. */
void metrics_receive(struct shim *shim)
{
}

/* And this. */
void agent_socket_say(struct shim *shim, enum fact fact, const char *format, ...)
{
}

/* Datagrams of ranks; '1' before them: the node has one rank, which may be a launcher. */
bool fuzz_rank_lines(const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return false;
    }
    struct launch_rank numbers[RANKS] = {{.number = 4}, {.number = 5}, {.number = 6}};
    struct rank ranks[RANKS] = {{.state = RANK_LIVE}, {.state = RANK_LIVE}, {.state = RANK_LIVE}};
    struct shim *shim = xzalloc(sizeof *shim);
    shim->ranks = ranks;
    shim->launch.ranks = numbers;
    shim->launch.rank_count = bytes[0] == '1' ? 1 : RANKS;
    lines_receive(shim, (const char *)bytes + 1, size - 1);
    for (size_t i = 0; i < shim->mark_count; i++) {
        const struct mark *mark = &shim->marks[i];
        FUZZ_MUST(strnlen(mark->name, sizeof mark->name) < sizeof mark->name && mark->name[0] != '\0');
        FUZZ_MUST(strpbrk(mark->name, "\n\"\\") == NULL && mark->rank >= 0 && mark->rank < LIMIT_GPUS);
        FUZZ_MUST(memmem(bytes, size, mark->name, strlen(mark->name)) != NULL);
    }
    bool taken = shim->mark_count > 0 || shim->checkpoint_ms > 0;
    FUZZ_MUST(shim->checkpoint_ms > 0 || !checkpoint_by_all(shim));
    checkpoint_forget(shim);
    FUZZ_MUST(!checkpoint_by_all(shim));
    free(shim);
    return taken;
}
