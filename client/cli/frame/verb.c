/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the list of verbs and what their option tables have in common. It promises that help, parsing and
 * completion see the same rows. What a verb does is left to the file of its name. */
#include "client/cli/frame/verb.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

static const struct verb *const all[] = {
    &verb_run,     &verb_submit,  &verb_sbatch,     &verb_convert,  &verb_ps,      &verb_get,    &verb_logs,
    &verb_results, &verb_metrics, &verb_open,       &verb_events,   &verb_wait,    &verb_cancel, &verb_rm,
    &verb_explain, &verb_plan,    &verb_preempt,    &verb_hold,     &verb_release, &verb_update, &verb_up,
    &verb_down,    &verb_nodes,   &verb_pools,      &verb_quotas,   &verb_shares,  &verb_login,  &verb_token,
    &verb_admin,   &verb_version, &verb_completion, &verb_simulate, NULL,
};

const struct verb *const *verb_all(void)
{
    return all;
}

static const struct verb *find_nearest(const struct verb *const *verbs, const char *name)
{
    const struct verb *nearest = NULL;
    unsigned best = (unsigned)(strlen(name) / 3) + 2;
    for (; *verbs != NULL; verbs++) {
        unsigned distance = text_distance(name, (*verbs)->name);
        if (distance < best && distance < strlen(name)) {
            nearest = *verbs;
            best = distance;
        }
    }
    return nearest;
}

const struct verb *verb_find(const struct verb *const *verbs, const char *name, struct err *err)
{
    for (size_t i = 0; verbs[i] != NULL; i++) {
        if (strcmp(verbs[i]->name, name) == 0) {
            return verbs[i];
        }
    }
    const struct verb *nearest = find_nearest(verbs, name);
    if (nearest != NULL) {
        err_set(err, ERR_USAGE, "unknown verb \"%s\"; did you mean \"%s\"?", name, nearest->name);
    } else {
        err_set(err, ERR_USAGE, "unknown verb \"%s\"", name);
    }
    err_hint(err, "see gpuctl --help");
    return NULL;
}

static void add(struct option_table *table, struct option_spec spec)
{
    table->items = xrealloc(table->items, (table->count + 1) * sizeof table->items[0]);
    table->items[table->count++] = spec;
}

void option_flag(struct option_table *table, char letter, const char *name, const char *help, bool *target)
{
    add(table, (struct option_spec){
                   .letter = letter, .name = name, .help = help, .kind = OPTION_FLAG, .target = target});
}

void option_choice(struct option_table *table, char letter, const char *name, const char *value,
                   const char *help, const char *choices, const char **target)
{
    add(table, (struct option_spec){.letter = letter,
                                    .name = name,
                                    .value_name = value,
                                    .help = help,
                                    .kind = OPTION_TEXT,
                                    .target = target,
                                    .choices = choices});
}

void option_text(struct option_table *table, char letter, const char *name, const char *value,
                 const char *help, const char **target)
{
    option_choice(table, letter, name, value, help, NULL, target);
}

void option_int(struct option_table *table, char letter, const char *name, const char *value,
                const char *help, int64_t min, int64_t max, int64_t *target)
{
    add(table, (struct option_spec){.letter = letter,
                                    .name = name,
                                    .value_name = value,
                                    .help = help,
                                    .kind = OPTION_INT,
                                    .target = target,
                                    .min = min,
                                    .max = max});
}

void option_duration(struct option_table *table, char letter, const char *name, const char *help,
                     int64_t *target_ms)
{
    add(table, (struct option_spec){.letter = letter,
                                    .name = name,
                                    .value_name = "DURATION",
                                    .help = help,
                                    .kind = OPTION_DURATION,
                                    .target = target_ms});
}

void option_multi_document(struct option_table *table, char letter, const char *name, const char *value,
                           const char *help, struct option_list *target)
{
    add(table, (struct option_spec){.letter = letter,
                                    .name = name,
                                    .value_name = value,
                                    .help = help,
                                    .kind = OPTION_LIST,
                                    .target = target});
}

void option_add_format(struct option_table *table)
{
    option_choice(table, 'o', "output", "FORMAT", "how to show it", PRINT_FORMATS, &table->common->format);
}

void option_add_watch(struct option_table *table)
{
    option_flag(table, 'w', "watch", "show it again when it changes", &table->common->watch);
}

void option_add_quiet(struct option_table *table, const char *help)
{
    option_flag(table, 'q', "quiet", help, &table->common->quiet);
}

void verb_describe_format(void *options, struct option_table *table)
{
    option_add_format(table);
}

void verb_describe_watched(void *options, struct option_table *table)
{
    option_add_watch(table);
    option_add_format(table);
}

void option_table_finish(struct option_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->items[i].kind == OPTION_LIST) {
            options_finish_list(table->items[i].target);
        }
    }
    free(table->items);
    *table = (struct option_table){0};
}

static void describe_controller(struct common *common, struct option_table *table)
{
    option_text(table, 0, "url", "URL", "of the controller", &common->url);
    option_text(table, 0, "token-file", "FILE", "that holds the token for it", &common->token_file);
    option_text(table, 0, "cacert", "FILE", "certificates to trust for https", &common->cacert);
    table->items[table->count - 1].alias = "ca-file";
    option_flag(table, 0, "insecure-plain-http", "allow http to another host", &common->insecure_plain_http);
}

static void describe_state(struct common *common, struct option_table *table)
{
    option_text(table, 0, "state", "DIR", "state folder of your own instance", &common->state);
}

void verb_describe_common(struct common *common, struct option_table *ret_table)
{
    *ret_table = (struct option_table){0};
    describe_controller(common, ret_table);
    describe_state(common, ret_table);
    option_flag(ret_table, 'h', "help", "show this", &common->help);
}

static bool refuse_common(const char *path, const char *name, struct err *err)
{
    err_set(err, ERR_USAGE, "%s does not take --%s", path, name);
    return err_hint(err, "see %s --help", path);
}

bool verb_takes(const struct verb *verb, const struct common *common, const char *path, struct err *err)
{
    const char *given = common->url != NULL          ? "url"
                        : common->token_file != NULL ? "token-file"
                        : common->cacert != NULL     ? "cacert"
                                                     : NULL;
    given = given == NULL && common->insecure_plain_http ? "insecure-plain-http" : given;
    if (given != NULL && verb->reach != REACH_CONTROLLER) {
        return refuse_common(path, given, err);
    }
    return common->state == NULL || verb->reach == REACH_STATE || refuse_common(path, "state", err);
}

void verb_describe(const struct verb *verb, void *options, struct common *common,
                   struct option_table *ret_table)
{
    *ret_table = (struct option_table){.common = common};
    common->format = "table";
    if (verb->describe != NULL) {
        verb->describe(options, ret_table);
    }
    if (verb->reach == REACH_CONTROLLER) {
        describe_controller(common, ret_table);
    }
    if (verb->reach == REACH_STATE) {
        describe_state(common, ret_table);
    }
    option_flag(ret_table, 'h', "help", "show this", &common->help);
}

static void help_group(FILE *out, const struct verb *verb, const char *path)
{
    fprintf(out, "Usage: %s VERB\n\n%s\n\nVerbs:\n", path, verb->summary);
    for (size_t i = 0; verb->nested[i] != NULL; i++) {
        fprintf(out, "  %-12s %s\n", verb->nested[i]->name, verb->nested[i]->summary);
    }
}

void verb_help(FILE *out, const struct verb *verb, const char *path)
{
    if (verb->nested != NULL) {
        help_group(out, verb, path);
        return;
    }
    autofree void *options = xzalloc(verb->options_size + 1);
    struct common common = {0};
    struct option_table table;
    verb_describe(verb, options, &common, &table);
    autofree char *usage = xprintf("%s [OPTIONS]%s%s", path, verb->arguments != NULL ? " " : "",
                                   verb->arguments != NULL ? verb->arguments : "");
    options_help(out, usage, verb->summary, table.items, table.count);
    if (verb->details != NULL) {
        fprintf(out, "\n%s\n", verb->details);
    }
    option_table_finish(&table);
}
