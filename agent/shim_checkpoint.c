/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledged checkpoints: a rank says in a line to rank.sock that it has saved what it needs to go on
 * later, and then nobody has to wait for it. It promises that a rank counts only for what came since the last
 * signal of the kill ladder, and that a launcher counts when each process that it started has spoken. Lines
 * are a user's and may hold anything: of those that are not understood nothing is believed. What follows for
 * the attempt is shim_kill.c's. */
#include "agent/shim.h"

#include <string.h>

#define WORD "\"checkpoint\""

/* What a line says, as far as it is asked for. */
struct said {
    bool checkpoint;
    int64_t rank, local_rank, local_world; /* -1: not said */
};

static const char *blanks_pass(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

/* From behind the first quote of a string to its last. */
static const char *string_pass(const char *at, const char *end)
{
    while (at < end && *at != '"') {
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    }
    return at;
}

/* A whole number that a rank may have; -1 for anything else. */
static int64_t number_at(const char *at, const char *end)
{
    int64_t number = -1;
    while (at < end && *at >= '0' && *at <= '9' && number < LIMIT_GPUS) {
        number = (number < 0 ? 0 : number * 10) + (*at++ - '0');
    }
    return number;
}

static bool is_word(const char *key, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(key, word, length) == 0;
}

static void member_note(const char *key, size_t length, const char *value, const char *end, struct said *said)
{
    if (is_word(key, length, "checkpoint")) {
        said->checkpoint = true;
    } else if (is_word(key, length, "rank")) {
        said->rank = number_at(value, end);
    } else if (is_word(key, length, "local_rank")) {
        said->local_rank = number_at(value, end);
    } else if (is_word(key, length, "local_world_size")) {
        said->local_world = number_at(value, end);
    }
}

/* The members of the outermost object; a string with a colon behind it is a key. */
static struct said line_read(const char *at, const char *end)
{
    struct said said = {.rank = -1, .local_rank = -1, .local_world = -1};
    int depth = 0;
    while (at < end) {
        char c = *at++;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (c != '"') {
            continue;
        }
        const char *key = at;
        at = string_pass(at, end);
        size_t length = (size_t)(at - key);
        at = blanks_pass(at < end ? at + 1 : end, end);
        if (depth == 1 && at < end && *at == ':') {
            member_note(key, length, blanks_pass(at + 1, end), end, &said);
        }
    }
    return said;
}

/* NULL: it is of no rank here. A node's only rank may be a launcher, whose processes count anew. */
static struct rank *rank_of(const struct shim *shim, const struct said *said)
{
    if (shim->launch.rank_count == 1) {
        return &shim->ranks[0];
    }
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->launch.ranks[i].number == said->rank) {
            return &shim->ranks[i];
        }
    }
    return NULL;
}

/* One of the processes that the node's only rank has started; true when all have spoken. */
static bool voice_note(struct shim *shim, const struct said *said)
{
    size_t count = 0;
    shim->voices[said->local_rank] = true;
    for (int64_t i = 0; i < said->local_world; i++) {
        count += shim->voices[i];
    }
    return count == (size_t)said->local_world;
}

static void line_take(struct shim *shim, const char *line, const char *end)
{
    struct said said = line_read(line, end);
    struct rank *rank = said.checkpoint ? rank_of(shim, &said) : NULL;
    if (rank == NULL) {
        return;
    }
    shim->checkpoint_ms = shim_wall_ms();
    bool one_of_many = shim->launch.rank_count == 1 && said.local_world > 1 &&
                       said.local_world <= LIMIT_NODE_DEVICES && said.local_rank >= 0 &&
                       said.local_rank < said.local_world;
    rank->saved = rank->saved || !one_of_many || voice_note(shim, &said);
}

void checkpoint_receive(struct shim *shim, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    for (const char *at = bytes; at < end;) {
        const char *word = memmem(at, (size_t)(end - at), WORD, strlen(WORD));
        if (word == NULL) {
            return;
        }
        const char *before = memrchr(at, '\n', (size_t)(word - at));
        const char *behind = memchr(word, '\n', (size_t)(end - word));
        behind = behind != NULL ? behind : end;
        line_take(shim, before != NULL ? before + 1 : at, behind);
        at = behind;
    }
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
