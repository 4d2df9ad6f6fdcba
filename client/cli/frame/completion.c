/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl completion`, and the answers to the scripts that it prints. The scripts ask `gpuctl --complete` at
 * each key, so they know every verb and option of the program that is installed: the answers come from the
 * tables of parsing and help. */
#include "client/cli/frame/completion.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

/* --- what there is to offer --- */

static void offer(const char *prefix, const char *word, size_t length, const char *meaning)
{
    printf("%s%.*s\t%s\n", prefix, (int)length, word, meaning);
}

static void offer_choices(const char *choices)
{
    for (const char *at = choices; at != NULL && *at != '\0'; at += *at == '|') {
        size_t length = strcspn(at, "|");
        offer("", at, length, "");
        at += length;
    }
}

static void offer_verbs(const struct verb *const *verbs)
{
    for (; *verbs != NULL; verbs++) {
        offer("", (*verbs)->name, strlen((*verbs)->name), (*verbs)->summary);
    }
}

static void offer_options(const struct option_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->items[i];
        offer("--", spec->name, strlen(spec->name), spec->help);
        if (spec->letter != '\0') {
            offer("-", &spec->letter, 1, spec->help);
        }
    }
}

static void offer_value(const struct option_spec *spec)
{
    if (strcmp(spec->value_name, "FILE") == 0 || strcmp(spec->value_name, "DIR") == 0 ||
        strncmp(spec->value_name, "LOCAL", 5) == 0) {
        puts(":files");
    } else {
        offer_choices(spec->choices);
    }
}

/* --- which of it fits --- */

/* The option that the word names, if it takes a value; else NULL. */
static const struct option_spec *option_of(const struct option_table *table, const char *word)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->items[i];
        bool named = word[0] == '-' && ((word[1] == '-' && strcmp(word + 2, spec->name) == 0) ||
                                        (word[1] == spec->letter && word[1] != '\0' && word[2] == '\0'));
        if (named && spec->kind != OPTION_FLAG) {
            return spec;
        }
    }
    return NULL;
}

/* The index of the first word that is neither an option nor the value of one; count: there is none. */
static size_t first_argument(const struct option_table *table, char **words, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        if (strcmp(words[at], "--") == 0) {
            return at + 1 < count ? at + 1 : count;
        }
        if (words[at][0] != '-') {
            return at;
        }
        at += option_of(table, words[at]) != NULL;
    }
    return count;
}

/* What the arguments of a verb may be; the options where there is nothing to offer. */
static const char *const *offer_arguments(const struct verb *verb, const struct option_table *table)
{
    static const char *const jobs[] = {"gpuctl", "ps", "--all", "--quiet", NULL};
    static const char *const nodes[] = {"gpuctl", "nodes", "list", "--quiet", NULL};
    switch (verb->argument) {
    case ARGUMENT_JOB:
        return jobs;
    case ARGUMENT_NODE:
        return nodes;
    case ARGUMENT_SHELL:
        offer_choices("bash|zsh|fish");
        break;
    case ARGUMENT_FILE:
    case ARGUMENT_COMMAND:
        puts(":files");
        break;
    case ARGUMENT_NONE:
        offer_options(table);
        break;
    }
    return NULL;
}

/* words are those behind the verb, which has so many before it. */
static const char *const *offer_behind(const struct verb *verb, const struct option_table *table,
                                       char **words, size_t count, size_t before)
{
    size_t last = count - 1;
    size_t first = first_argument(table, words, count);
    const struct option_spec *option = last > 0 ? option_of(table, words[last - 1]) : NULL;
    if (verb->argument == ARGUMENT_COMMAND && first < last) {
        printf(":command %zu\n", before + first);
    } else if (option != NULL) {
        offer_value(option);
    } else if (words[last][0] == '-') {
        offer_options(table);
    } else {
        return offer_arguments(verb, table);
    }
    return NULL;
}

/* Before a verb: one of them, or an option that may stand there. */
static void offer_before(const struct verb *const *verbs, const struct option_table *table, char **words,
                         size_t count)
{
    const struct option_spec *option = count > 1 ? option_of(table, words[count - 2]) : NULL;
    if (option != NULL) {
        offer_value(option);
    } else if (words[count - 1][0] == '-') {
        offer_options(table);
    } else {
        offer_verbs(verbs);
    }
}

/* The verb that the words but the last name, and how many they are; NULL: none yet, and what it may be is
 * offered, or no verb has that name. */
static const struct verb *read_verb(char **words, size_t count, size_t *ret_at)
{
    const struct verb *const *verbs = verb_all();
    const struct verb *verb = NULL;
    struct common common = {0};
    struct option_table table;
    struct err ignored;
    size_t at = 0;
    verb_describe_common(&common, &table);
    while (verbs != NULL) {
        at += first_argument(&table, words + at, count - 1 - at);
        if (at + 1 >= count) {
            offer_before(verbs, &table, words, count);
            verb = NULL;
            break;
        }
        verb = verb_find(verbs, words[at++], &ignored);
        verbs = verb != NULL ? verb->nested : NULL;
    }
    option_table_finish(&table);
    *ret_at = at;
    return verb;
}

const char *const *completion_offer(char **words, size_t count)
{
    size_t at = 0;
    const struct verb *verb = count > 0 ? read_verb(words, count, &at) : NULL;
    if (verb == NULL) {
        return NULL;
    }
    autofree void *options = xzalloc(verb->options_size + 1);
    struct common common = {0};
    struct option_table table;
    verb_describe(verb, options, &common, &table);
    const char *const *more = offer_behind(verb, &table, words + at, count - at, at + 1);
    option_table_finish(&table);
    return more;
}

/* --- the verb --- */

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct {
        const char *name;
        const unsigned char *script;
        size_t length;
    } shells[] = {{"bash", completion_bash, completion_bash_length},
                  {"zsh", completion_zsh, completion_zsh_length},
                  {"fish", completion_fish, completion_fish_length}};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, call->rest[0]) == 0) {
            autotext struct text out = {0};
            text_append_bytes(&out, shells[i].script, shells[i].length);
            return print_out(&out, err);
        }
    }
    err_set(err, ERR_USAGE, "there is no completion for \"%s\"", call->rest[0]);
    return err_hint(err, "bash, zsh and fish are known");
}

const struct verb verb_completion = {
    .name = "completion",
    .arguments = "SHELL",
    .summary = "Print the completion script for bash, zsh or fish.",
    .details = "For bash, put this into ~/.bashrc: source <(gpuctl completion bash)",
    .argument = ARGUMENT_SHELL,
    .least = 1,
    .most = 1,
    .reach = REACH_NOTHING,
    .run = run,
};
