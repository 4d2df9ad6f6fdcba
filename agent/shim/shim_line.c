/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the JSON lines that ranks send to rank.sock: a few members of the outermost object. It never reads
 * beyond a line, whatever the line holds: lines come from the user's program. A line that it cannot parse has
 * no effect. shim_checkpoint.c and shim_mark.c interpret the members. */
#include "agent/shim/shim.h"

#include <string.h>

static const char *blanks_pass(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

/* From behind the opening quote of a string to its closing quote. */
static const char *string_pass(const char *at, const char *end)
{
    while (at < end && *at != '"') {
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    }
    return at;
}

/* A whole number in the range of ranks; -1 for anything else. */
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

static void member_note(const char *key, size_t length, const char *value, const char *end, struct line *line)
{
    if (is_word(key, length, "checkpoint")) {
        line->checkpoint = true;
    } else if (is_word(key, length, "mark") && value < end && *value == '"') {
        const char *last = string_pass(value + 1, end);
        line->mark = last < end ? value + 1 : NULL;
        line->mark_length = (size_t)(last - value - 1);
    } else if (is_word(key, length, "rank")) {
        line->rank = number_at(value, end);
    } else if (is_word(key, length, "local_rank")) {
        line->local_rank = number_at(value, end);
    } else if (is_word(key, length, "local_world_size")) {
        line->local_world = number_at(value, end);
    }
}

/* Reads the members of the outermost object; a string that a colon follows is a key. */
struct line line_read(const char *at, const char *end)
{
    struct line line = {.rank = -1, .local_rank = -1, .local_world = -1};
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
            member_note(key, length, blanks_pass(at + 1, end), end, &line);
        }
    }
    return line;
}

/* NULL: no rank of this node. A node's only rank may be a launcher, whose processes number their ranks
 * anew. */
struct rank *line_rank(const struct shim *shim, const struct line *line)
{
    if (shim->launch.rank_count == 1) {
        return &shim->ranks[0];
    }
    for (size_t i = 0; i < shim->launch.rank_count; i++) {
        if (shim->launch.ranks[i].number == line->rank) {
            return &shim->ranks[i];
        }
    }
    return NULL;
}

void line_each(struct shim *shim, const char *bytes, size_t length, const char *word,
               void (*take)(struct shim *shim, const struct line *line))
{
    const char *end = bytes + length;
    for (const char *at = bytes; at < end;) {
        const char *found = memmem(at, (size_t)(end - at), word, strlen(word));
        if (found == NULL) {
            return;
        }
        const char *before = memrchr(at, '\n', (size_t)(found - at));
        const char *behind = memchr(found, '\n', (size_t)(end - found));
        behind = behind != NULL ? behind : end;
        const struct line line = line_read(before != NULL ? before + 1 : at, behind);
        take(shim, &line);
        at = behind;
    }
}
