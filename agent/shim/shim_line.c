/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON lines that ranks send to rank.sock, of which the shim uses two kinds. It keeps the moments that
 * ranks report by name, such as "first all-reduce": the first moment of each of the first LIMIT_MARKS names
 * of this node. And it notes acknowledged checkpoints: a rank has saved its work, so that nobody has to wait
 * for it any longer. Only acknowledgements since the last signal of the kill ladder count; a launcher counts
 * once each process that it started has sent one. Lines come from the user's program: nothing is read beyond
 * a line, whatever it holds, and a line that cannot be parsed has no effect. shim_kill.c shortens the wait.
 */
#include "agent/shim/shim.h"

#include <string.h>

/* The members of a line that the shim uses. */
struct line {
    bool checkpoint;
    const char *mark; /* its name, not NUL-terminated; NULL: none */
    size_t mark_length;
    int64_t rank, local_rank, local_world; /* -1: absent */
    int64_t step;                          /* of the checkpoint; -1: absent */
};

/* --- parsing -------------------------------------------------------------------------------------------- */

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

/* The step in {"step": 100}, the value of a checkpoint; -1: there is none. */
static int64_t step_at(const char *at, const char *end)
{
    static const char word[] = "\"step\"";
    const char *last = memchr(at, '}', (size_t)(end - at));
    const char *found = last != NULL ? memmem(at, (size_t)(last - at), word, sizeof word - 1) : NULL;
    int64_t step = -1;
    if (found == NULL) {
        return -1;
    }
    at = blanks_pass(found + sizeof word - 1, last);
    at = at < last && *at == ':' ? blanks_pass(at + 1, last) : last;
    while (at < last && *at >= '0' && *at <= '9' && step < INT64_MAX / 100) {
        step = (step < 0 ? 0 : step * 10) + (*at++ - '0');
    }
    return step;
}

static bool is_word(const char *key, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(key, word, length) == 0;
}

static void member_note(const char *key, size_t length, const char *value, const char *end, struct line *line)
{
    if (is_word(key, length, "checkpoint")) {
        line->checkpoint = true;
        line->step = step_at(value, end);
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
static struct line line_read(const char *at, const char *end)
{
    struct line line = {.rank = -1, .local_rank = -1, .local_world = -1, .step = -1};
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

/* The rank of this node that sent the line; NULL: none. A node's only rank may be a launcher, whose processes
 * number their ranks anew. */
static struct rank *line_rank(const struct shim *shim, const struct line *line)
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

/* Calls take for each line that contains the word, which includes its quotes. */
static void line_each(struct shim *shim, const char *bytes, size_t length, const char *word,
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

/* --- moments -------------------------------------------------------------------------------------------- */

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
    mark->at_us = clock_boot_us();
    memcpy(mark->name, line->mark, line->mark_length); /* the rest is zero */
}

/* --- checkpoints ---------------------------------------------------------------------------------------- */

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

/* Tells the agent of a checkpoint that all have acknowledged, each of the `count` ranks or processes of this
 * node. Without a step the checkpoints count themselves. */
static void checkpoint_tell(struct shim *shim, const struct line *line, size_t own, size_t count, bool ranks)
{
    shim->acknowledged[own] = line->step >= 0 ? line->step + 1 : shim->acknowledged[own] + 1;
    for (size_t i = 0; i < count; i++) {
        bool live = !ranks || shim->ranks[i].state == RANK_LIVE;
        if (live && shim->acknowledged[i] != shim->acknowledged[own]) {
            return;
        }
    }
    agent_socket_say(shim, FACT_CHECKPOINT, "checkpoint %lld", (long long)shim->acknowledged[own] - 1);
}

static void checkpoint_take(struct shim *shim, const struct line *line)
{
    struct rank *rank = line->checkpoint ? line_rank(shim, line) : NULL;
    if (rank == NULL) {
        return;
    }
    shim->checkpoint_ms = clock_wall_ms();
    bool one_of_many = shim->launch.rank_count == 1 && line->local_world > 1 &&
                       line->local_world <= LIMIT_NODE_DEVICES && line->local_rank >= 0 &&
                       line->local_rank < line->local_world;
    rank->saved = rank->saved || !one_of_many || voice_note(shim, line);
    size_t own = one_of_many ? (size_t)line->local_rank : (size_t)(rank - shim->ranks);
    checkpoint_tell(shim, line, own, one_of_many ? (size_t)line->local_world : shim->launch.rank_count,
                    !one_of_many);
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

void lines_receive(struct shim *shim, const char *bytes, size_t length)
{
    line_each(shim, bytes, length, "\"checkpoint\"", checkpoint_take);
    line_each(shim, bytes, length, "\"mark\"", mark_take);
}
