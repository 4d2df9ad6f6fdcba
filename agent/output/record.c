/* SPDX-License-Identifier: Apache-2.0 */
/* Parses exit records. A record without its `end` line is rejected, and every number is checked. The caller
 * interprets a record. */
#include "agent/output/record.h"

#include <stdlib.h>
#include <string.h>

#include "agent/output/rank_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
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
static void parse_moments(char *rest, struct record_moments *moments)
{
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *word = strsep(&line, " ");
        if (strcmp(word, "moments") == 0) {
            read_moments(line, moments);
        } else if (strcmp(word, "mark") == 0) {
            read_mark(line, moments);
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
            parse_moments(rest, &record.moments);
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

bool record_read(const char *logs_folder, struct record *ret_record, struct err *err)
{
    autofree char *text = rank_file_read(logs_folder, NULL, SHIM_EXIT_FILE, LIMIT_EXIT_RECORD_BYTES, NULL);
    if (text == NULL) {
        return err_set(err, ERR_NOT_FOUND, "there is no exit record in %s", logs_folder);
    }
    return record_parse(text, ret_record, err);
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
