/* SPDX-License-Identifier: Apache-2.0 */
/* Parses exit records. A record without its `end` line, or of another attempt, is rejected, and every number
 * is checked. The caller interprets a record. */
#include "agent/output/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/output/rank_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define RANK_NUMBERS 7
#define MOMENTS      5

bool record_numbers(char **rest, int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *word = strsep(rest, " ");
        if (word == NULL || !text_to_int(word, 0, INT64_MAX, &numbers[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_rank(char *rest, struct rank_exit *ret_exit)
{
    int64_t numbers[RANK_NUMBERS];
    if (!record_numbers(&rest, numbers, RANK_NUMBERS)) {
        return false;
    }
    *ret_exit = (struct rank_exit){numbers[0], numbers[1], numbers[2],     numbers[3],
                                   numbers[4], numbers[5], numbers[6] != 0};
    return rest == NULL;
}

static bool parse_cause(char *rest, struct record *record)
{
    const char *word = strsep(&rest, " ");
    if (word == NULL || !cause_from_text(word, &record->cause)) {
        return false;
    }
    free(record->text);
    record->text = rest != NULL && *rest != '\0' ? xstrdup(rest) : NULL;
    return true;
}

static bool parse_line(char *line, struct record *record)
{
    char *word = strsep(&line, " ");
    if (strcmp(word, "rank") == 0 && record->rank_count < LIMIT_NODE_DEVICES) {
        size_t size = (record->rank_count + 1) * sizeof *record->ranks;
        record->ranks = xrealloc(record->ranks, size);
        return parse_rank(line, &record->ranks[record->rank_count++]);
    }
    if (strcmp(word, "checkpoint") == 0) {
        return line != NULL && text_to_int(line, 1, INT64_MAX, &record->checkpoint_ms);
    }
    return strcmp(word, "cause") == 0 && parse_cause(line, record);
}

/* --- behind the end ------------------------------------------------------------------------------------- */

static void read_moments(char *rest, struct record_moments *moments)
{
    int64_t at_us[MOMENTS];
    if (record_numbers(&rest, at_us, MOMENTS)) {
        moments->prepared_us = at_us[0];
        moments->begun_us = at_us[1];
        moments->running_us = at_us[2];
        moments->output_us = at_us[3];
        moments->gone_us = at_us[4];
    }
}

static void read_mark(char *rest, struct record_moments *moments)
{
    int64_t numbers[2]; /* rank, moment */
    if (moments->mark_count == LIMIT_MARKS || !record_numbers(&rest, numbers, 2) || rest == NULL ||
        numbers[0] >= LIMIT_GPUS || numbers[1] == 0 || !timing_is_name(rest, strlen(rest))) {
        return;
    }
    struct record_mark *mark = &moments->marks[moments->mark_count++];
    *mark = (struct record_mark){.rank = numbers[0], .at_us = numbers[1]};
    memcpy(mark->name, rest, strlen(rest) + 1);
}

/* Ignores lines that it cannot parse: the record is complete without them. */
static void parse_rest(char *rest, struct record *record)
{
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *word = strsep(&line, " ");
        if (strcmp(word, "epoch") == 0) {
            record_numbers(&line, &record->attempt_id, 1);
        } else if (strcmp(word, "moments") == 0) {
            read_moments(line, &record->moments);
        } else if (strcmp(word, "mark") == 0) {
            read_mark(line, &record->moments);
        }
    }
}

bool record_parse(const char *text, struct record *ret_record, struct err *err)
{
    struct record record = {.cause = CAUSE_NONE};
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    for (char *line = strsep(&rest, "\n"); line != NULL && rest != NULL; line = strsep(&rest, "\n")) {
        if (strcmp(line, "end") == 0) {
            parse_rest(rest, &record);
            *ret_record = record;
            return true;
        }
        if (!parse_line(line, &record)) {
            record_finish(&record);
            return err_set(err, ERR_MALFORMED, "the exit record has a line that is not understood");
        }
    }
    record_finish(&record);
    return err_set(err, ERR_MALFORMED, "the exit record is cut short");
}

/* After a loss of power, a file that was not synced may have what its blocks held before. */
static bool is_of(const struct record *record, uint64_t attempt_id)
{
    return record->attempt_id == 0 || (uint64_t)record->attempt_id == attempt_id;
}

bool record_read(const char *logs_folder, uint64_t attempt_id, struct record *ret_record, struct err *err)
{
    struct record record;
    autofree char *text = rank_file_read(logs_folder, NULL, SHIM_EXIT_FILE, LIMIT_EXIT_RECORD_BYTES, NULL);
    if (text == NULL) {
        return err_set(err, ERR_NOT_FOUND, "there is no exit record in %s", logs_folder);
    }
    if (!record_parse(text, &record, err)) {
        return false;
    }
    if (!is_of(&record, attempt_id)) {
        err_set(err, ERR_MALFORMED, "the exit record in %s is of attempt %lld", logs_folder,
                (long long)record.attempt_id);
        record_finish(&record);
        return false;
    }
    *ret_record = record;
    return true;
}

void record_secure(const char *logs_folder)
{
    int64_t ignored;
    autoclose int file = rank_file_open(logs_folder, NULL, SHIM_EXIT_FILE, &ignored);
    autoclose int folder = open(logs_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0 || folder < 0 || fsync(file) != 0 || fsync(folder) != 0) {
        log_warning("exit record not synced", "folder=%s error=\"%s\"", logs_folder, strerror(errno));
    }
}

int64_t record_worst_code(const struct record *record)
{
    int64_t worst = -1;
    for (size_t i = 0; i < record->rank_count; i++) {
        worst = record->ranks[i].code > worst ? record->ranks[i].code : worst;
    }
    return worst;
}

void record_finish(struct record *record)
{
    free(record->ranks);
    free(record->text);
    *record = (struct record){.cause = CAUSE_NONE};
}
