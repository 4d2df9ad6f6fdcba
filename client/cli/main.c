/* SPDX-License-Identifier: Apache-2.0 */
/* gpuctl, the command line. It goes from argv to a verb, and from the verb's error to an exit code. Each
 * verb is in the file of its name. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/controller/connect.h"
#include "client/cli/frame/completion.h"
#include "client/cli/frame/hint.h"
#include "client/cli/transport/context.h"
#include "client/cli/show/print.h"
#include "client/cli/slurm/commands/commands.h"
#include "client/cli/common/jobs.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

static void help(FILE *out)
{
    fputs("Usage: gpuctl [OPTIONS] VERB [OPTIONS] [ARGUMENTS]\n\nRun jobs on GPUs that you own.\n\nVerbs:\n",
          out);
    for (const struct verb *const *verb = verb_all(); *verb != NULL; verb++) {
        fprintf(out, "  %-12s %s\n", (*verb)->name, (*verb)->summary);
    }
    fputs("\n`gpuctl VERB --help` tells more. --url, --token-file, --cacert, --insecure-plain-http, "
          "--state and -o\n"
          "may also stand before the verb. Settings: flags, then GPUCTL_URL, GPUCTL_TOKEN_FILE and other "
          "GPUCTL_* variables,\n"
          "then lines `name = value` of ~/.config/gpuctl/config, then of /etc/gpuctl/config. Their names: ",
          out);
    context_name_settings(out);
    fputs(
        ".\nWithout any, `gpuctl run` starts a controller of your own, with its state in GPUCTL_STATE, or in "
        "~/.local/state/gpuctl.\n",
        out);
}

static bool check_rest(const struct verb *verb, const struct call *call, const char *path, struct err *err)
{
    if (call->rest_count < verb->least) {
        err_set(err, ERR_USAGE, "%s needs %s", path, verb->arguments);
    } else if (call->rest_count > verb->most) {
        err_set(err, ERR_USAGE, "%s does not take \"%s\"", path, call->rest[verb->most]);
    } else {
        return true;
    }
    return err_hint(err, "see %s --help", path);
}

static bool meet_need(struct call *call, struct err *err)
{
    return call->verb->need == NEED_NOTHING || (connect_controller(call, false, &call->api, err) &&
                                                (call->verb->need == NEED_API || call->rest_count == 0 ||
                                                 resolve_job(call->api, call->rest[0], call->id, err)));
}

/* Parses and runs a verb that has no nested ones; before has the options that stood before it. */
static bool run_verb(const struct verb *verb, const struct common *before, const char *path, int argc,
                     char **argv, int *ret_exit, struct err *err)
{
    if (!verb_takes(verb, before, path, err)) {
        return false;
    }
    autofree void *options = xzalloc(verb->options_size + 1);
    struct common common = *before;
    struct option_table table;
    verb_describe(verb, options, &common, &table);
    autofree char **rest = NULL;
    struct call call = {.verb = verb, .options = options, .common = &common};
    bool good = options_parse(table.items, table.count, argc, argv, verb->stop_at_positional, NULL, &rest,
                              &call.rest_count, err);
    call.rest = rest;
    call.format = print_format(common.format);
    if (good && common.help) {
        verb_help(stdout, verb, path);
    } else if (good) {
        good = check_rest(verb, &call, path, err) && verb_can_send(verb, options, err) &&
               (verb->check == NULL || verb->check(&call, err)) && meet_need(&call, err) &&
               verb->run(&call, ret_exit, err);
    }
    api_destroy(call.api);
    option_table_finish(&table);
    return good;
}

static bool is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

/* The exit code of a failed verb. */
static int exit_of(const struct verb *verb, const struct err *err)
{
    return verb->own_failure != 0 && err->code != ERR_WAIT_TIMEOUT ? verb->own_failure : err_exit(err->code);
}

static int run(const struct verb *verb, const struct common *before, const char *path, int argc, char **argv)
{
    struct err err = {0};
    int code = 0;
    if (run_verb(verb, before, path, argc, argv, &code, &err)) {
        return code;
    }
    print_error(&err);
    return exit_of(verb, &err);
}

/* Reads the common options that stand before a verb; *ret_words gets the verb and what follows. */
static bool read_common(int argc, char **argv, struct common *common, char ***ret_words, size_t *ret_count,
                        struct err *err)
{
    struct option_table table;
    verb_describe_common(common, &table);
    bool good = options_parse(table.items, table.count, argc, argv, true, NULL, ret_words, ret_count, err);
    option_table_finish(&table);
    return good;
}

/* `gpuctl nodes ...`: the first nested verb is the one that may be left out. */
static int run_group(const struct verb *group, const struct common *before, const char *path, int argc,
                     char **argv)
{
    struct err err;
    struct common common = *before;
    autofree char **words = NULL;
    size_t count = 0;
    if (argc > 1 && is_help(argv[1])) {
        verb_help(stdout, group, path);
        return 0;
    }
    /* an option that is not common is one of the first verb */
    bool left_out = !read_common(argc, argv, &common, &words, &count, &err) || count == 0;
    const struct verb *chosen = left_out || group->choose == NULL ? NULL : group->choose(words[0]);
    const struct verb *verb = chosen != NULL ? chosen
                              : left_out     ? group->nested[0]
                                             : verb_find(group->nested, words[0], &err);
    left_out |= chosen != NULL;
    if (verb == NULL) {
        err_hint(&err, "see %s --help", path);
        print_error(&err);
        return err_exit(err.code);
    }
    autofree char *nested_path = xprintf("%s %s", path, verb->name);
    const struct common *known = left_out ? before : &common;
    int rest_count = left_out ? argc : (int)count;
    char **rest = left_out ? argv : words;
    if (verb->nested != NULL) {
        return run_group(verb, known, nested_path, rest_count, rest);
    }
    return run(verb, known, nested_path, rest_count, rest);
}

static int run_named(const char *name, const struct common *before, int argc, char **argv)
{
    struct err err = {0};
    const struct verb *verb = verb_find(verb_all(), name, &err);
    if (verb == NULL) {
        hint_find(argv, (size_t)argc, &err);
        print_error(&err);
        return err_exit(err.code);
    }
    autofree char *path = xprintf("gpuctl %s", verb->name);
    if (verb->nested != NULL) {
        return run_group(verb, before, path, argc, argv);
    }
    return run(verb, before, path, argc, argv);
}

static int show_help(int count, char **words)
{
    static const struct common nothing;
    char flag[] = "--help";
    if (count < 1) {
        help(stdout);
        return 0;
    }
    char *asked[] = {words[0], count > 1 ? words[1] : flag, count > 1 ? flag : NULL, NULL};
    return run_named(words[0], &nothing, count > 1 ? 3 : 2, asked);
}

/* Options that stand before the verb are common to many verbs, and count as if they stood behind it. */
static int run_words(int argc, char **argv)
{
    struct common common = {0};
    struct err err = {0};
    autofree char **words = NULL;
    size_t count = 0;
    if (!read_common(argc, argv, &common, &words, &count, &err)) {
        if (err.hint[0] == '\0') {
            err_hint(&err, "options of a verb stand behind it: gpuctl VERB --help shows them");
        }
        print_error(&err);
        return err_exit(err.code);
    }
    if (common.help) {
        help(stdout);
        return 0;
    }
    if (count == 0) {
        help(stderr);
        return err_exit(ERR_USAGE);
    }
    if (strcmp(words[0], "help") == 0) {
        return show_help((int)count - 1, words + 1);
    }
    return run_named(words[0], &common, (int)count, words);
}

/* Called by the name of a command of Slurm: options and exit codes are that command's. */
static int run_as_slurm(const struct verb *command, int argc, char **argv)
{
    static const struct common nothing;
    struct err err = {0};
    int code = 0;
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("%s of gpuctl %s\n", command->name, GPUCTL_VERSION);
        return 0;
    }
    if (run_verb(command, &nothing, command->name, argc, argv, &code, &err)) {
        return code;
    }
    slurm_print_error(command->name, &err);
    return EXIT_OF_SLURM;
}

/* `gpuctl --complete WORD...`, which the completion scripts ask. */
static int complete(int count, char **words)
{
    const char *const *more = completion_offer(words, (size_t)count);
    int length = 0;
    while (more != NULL && more[length] != NULL) {
        length++;
    }
    return more != NULL ? run_words(length, (char **)(uintptr_t)more) : 0;
}

int main(int argc, char **argv)
{
    json_begin();
    const struct verb *command = argc > 0 ? slurm_command(argv[0]) : NULL;
    if (command != NULL) {
        return run_as_slurm(command, argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("gpuctl %s\n", GPUCTL_VERSION);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--complete") == 0) {
        return complete(argc - 2, argv + 2);
    }
    return run_words(argc, argv);
}
