/* SPDX-License-Identifier: Apache-2.0 */
/* Reads batch scripts: finds the directives and their words. It promises to read directives by the same
 * table as the command line, up to the first line that is a command, and to name the line of an error.
 * batch_spec.c gives the options their meaning. */
#include "client/cli/slurm/batch.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/slurm/slurm_values.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

#define DIRECTIVE  "#SBATCH"
#define LINE_WORDS 64 /* of one directive */

const struct option_row batch_rows[] = {
#define X(member, letter, name, value, help, fate, remark)                                                   \
    ROW_TEXT(struct batch_options, member, letter, name, value, help),
    BATCH_TEXTS(X)
#undef X
#define X(member, letter, name, help, fate, remark)                                                          \
    ROW_FLAG(struct batch_options, member, letter, name, help),
        BATCH_FLAGS(X)
#undef X
            ROWS_END};

/* Options of the command line win. */
static void merge(struct batch_options *options, const struct batch_options *given)
{
    if (given->requeue || given->no_requeue) {
        options->requeue = options->no_requeue = false;
    }
#define X(member, ...) options->member = given->member != NULL ? given->member : options->member;
    BATCH_TEXTS(X)
#undef X
#define X(member, ...) options->member = given->member || options->member;
    BATCH_FLAGS(X)
#undef X
}

/* --- directives --- */

static bool refuse_line(const char *name, size_t line, struct err *err)
{
    struct err inner = *err;
    return err_field(err, ERR_USAGE, inner.field, "gpuctl sbatch --help lists the options", "%s:%zu: %s",
                     name, line, inner.text);
}

/* Cuts the value off options such as `--exclusive=user`, where it does not matter. */
static void cut_value(char *word)
{
    static const char *const words[] = {"--exclusive=", "--get-user-env=", "--oversubscribe="};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(word, words[i], strlen(words[i])) == 0) {
            word[strlen(words[i]) - 1] = '\0';
        }
    }
}

/* The words of one directive, kept by the batch. */
static bool split_line(struct batch *batch, const char *line, char *argv[LINE_WORDS], int *ret_count,
                       struct err *err)
{
    int count = 1;
    argv[0] = NULL;
    for (char *word;; argv[count++] = word) {
        if (!slurm_word(&line, &word)) {
            return err_set(err, ERR_USAGE, "a quote is not closed");
        }
        if (word == NULL) {
            *ret_count = count;
            return true;
        }
        text_list_add(&batch->words, word);
        cut_value(word);
        if (count == LINE_WORDS) {
            return err_set(err, ERR_USAGE, "more than %d words", LINE_WORDS - 1);
        }
    }
}

static bool take_line(struct batch *batch, const struct option_table *table, const char *line,
                      struct err *err)
{
    char *argv[LINE_WORDS];
    autofree char **rest = NULL;
    size_t rest_count;
    int argc = 0;
    if (!split_line(batch, line, argv, &argc, err) ||
        !options_parse(table->items, table->count, argc, argv, false, NULL, &rest, &rest_count, err)) {
        return false;
    }
    return rest_count == 0 || err_set(err, ERR_USAGE, "\"%s\" is no option", rest[0]);
}

static bool is_directive(const char *line)
{
    size_t length = strlen(DIRECTIVE);
    return strncmp(line, DIRECTIVE, length) == 0 && (line[length] == ' ' || line[length] == '\t');
}

static bool is_comment(const char *line)
{
    line += strspn(line, " \t");
    return *line == '#' || *line == '\0';
}

/* Every directive before the first command. */
static bool take_directives(struct batch *batch, struct err *err)
{
    struct option_table table = {0};
    option_table_add(&table, batch_rows, &batch->options);
    bool good = true;
    bool over = false;
    const char *at = batch->text;
    for (size_t number = 1; good && !over && *at != '\0'; number++) {
        size_t length = strcspn(at, "\n");
        autofree char *line = xstrndup(at, length);
        if (is_directive(line)) {
            good = take_line(batch, &table, line + strlen(DIRECTIVE), err) ||
                   refuse_line(batch->name, number, err);
        } else {
            over = !is_comment(line);
        }
        at += length + (at[length] == '\n');
    }
    option_table_finish(&table);
    return good;
}

/* --- the whole --- */

bool batch_is_script(const char *text)
{
    return strncmp(text, "#!", 2) == 0;
}

static bool check_text(const struct batch *batch, struct err *err)
{
    if (!batch_is_script(batch->text)) {
        return err_field(err, ERR_USAGE, NULL, "begin it with #!/bin/bash for instance",
                         "%s:1: a batch script must begin with #! and its interpreter", batch->name);
    }
    if (strlen(batch->text) != batch->length) {
        return err_set(err, ERR_USAGE, "%s: a batch script is text, and this has a NUL", batch->name);
    }
    return strstr(batch->text, "\r\n") == NULL ||
           err_field(err, ERR_USAGE, NULL, "convert it, with dos2unix for instance",
                     "%s: the lines end as they do in DOS", batch->name);
}

bool batch_parse(const char *name, const char *text, size_t length, const struct batch_options *given,
                 struct batch *ret_batch, struct err *err)
{
    struct batch batch = {.name = xstrdup(name), .text = xalloc(length + 1), .length = length};
    memcpy(batch.text, text, length);
    batch.text[length] = '\0';
    if (!check_text(&batch, err) || !take_directives(&batch, err)) {
        batch_finish(&batch);
        return false;
    }
    merge(&batch.options, given);
    *ret_batch = batch;
    return true;
}

bool batch_read(const char *path, const struct batch_options *given, struct batch *ret_batch, struct err *err)
{
    autofree char *text = NULL;
    size_t length;
    if (path == NULL) {
        text = xprintf("#!/bin/sh\n%s\n", given->wrap);
        return batch_parse("wrap", text, strlen(text), given, ret_batch, err);
    }
    return file_read(path, CLIENT_INLINE_BYTES, &text, &length, err) &&
           batch_parse(path, text, length, given, ret_batch, err);
}

void batch_finish(struct batch *batch)
{
    text_list_finish(&batch->words);
    free(batch->name);
    free(batch->text);
    *batch = (struct batch){0};
}
