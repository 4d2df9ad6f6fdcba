/* SPDX-License-Identifier: Apache-2.0 */
/* The list of verbs, and their option tables. It promises that help, parsing and completion see the same
 * rows. Each verb is in the file of its name. */
#include "client/cli/frame/verb.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

static const struct verb *const all[] = {
    &verb_run,          &verb_submit,   &verb_sbatch,   &verb_convert,    &verb_ps,      &verb_queue,
    &verb_top,          &verb_get,      &verb_logs,     &verb_attach,     &verb_results, &verb_ls,
    &verb_cp,           &verb_exec,     &verb_ssh,      &verb_ssh_config, &verb_debug,   &verb_notebook,
    &verb_port_forward, &verb_metrics,  &verb_open,     &verb_events,     &verb_wait,    &verb_cancel,
    &verb_rm,           &verb_retry,    &verb_clone,    &verb_explain,    &verb_plan,    &verb_preempt,
    &verb_hold,         &verb_release,  &verb_update,   &verb_schedule,   &verb_up,      &verb_down,
    &verb_nodes,        &verb_gpus,     &verb_pools,    &verb_quotas,     &verb_shares,  &verb_usage,
    &verb_login,        &verb_logout,   &verb_context,  &verb_whoami,     &verb_doctor,  &verb_secret,
    &verb_token,        &verb_audit,    &verb_webhooks, &verb_admin,      &verb_mcp,     &verb_version,
    &verb_completion,   &verb_simulate, NULL,
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

const struct option_row rows_format[] = {ROW_FORMAT, ROWS_END};
const struct option_row rows_watched[] = {ROW_WATCH, ROW_FORMAT, ROWS_END};

/* Of a verb that speaks to a controller, of one that is about an instance, and of every verb. */
static const struct option_row rows_controller[] = {
    ROW_TEXT(struct common, context, 0, "context", "NAME", "a controller that `gpuctl context` lists"),
    ROW_TEXT(struct common, url, 0, "url", "URL", "of the controller"),
    ROW_TEXT(struct common, token_file, 0, "token-file", "FILE", "that holds the token for it"),
    ROW_TEXT(struct common, cacert, 0, "cacert", "FILE", "certificates to trust for https",
             .spec.alias = "ca-file"),
    ROW_FLAG(struct common, insecure_plain_http, 0, "insecure-plain-http", "allow http to another host"),
    ROWS_END};
static const struct option_row rows_state[] = {
    ROW_TEXT(struct common, state, 0, "state", "DIR", "state folder of your own instance"), ROWS_END};
static const struct option_row rows_help[] = {ROW_FLAG(struct common, help, 'h', "help", "show this"),
                                              ROWS_END};

static void set_absent(const struct option_row *row, void *target)
{
    if (row->spec.kind == OPTION_INT || row->spec.kind == OPTION_DURATION) {
        *(int64_t *)target = row->absent;
    } else if (row->absent_text != NULL) {
        *(const char **)target = row->absent_text;
    }
}

void option_rows_default(const struct option_row *rows, void *options)
{
    for (const struct option_row *row = rows; row->spec.name != NULL; row++) {
        set_absent(row, (char *)options + row->offset);
    }
}

/* New reference; NULL where the option was not given, or is a text that is not UTF-8. */
static json_t *value_of(const struct option_row *row, const void *value)
{
    switch (row->spec.kind) {
    case OPTION_FLAG:
        return *(const bool *)value ? json_true() : NULL;
    case OPTION_TEXT:
        return json_string(*(const char *const *)value);
    case OPTION_INT:
        return *(const int64_t *)value != row->absent ? json_integer(*(const int64_t *)value) : NULL;
    case OPTION_DURATION:
        return *(const int64_t *)value != row->absent ? json_seconds(*(const int64_t *)value) : NULL;
    case OPTION_LIST:
        break;
    }
    return NULL;
}

void option_send(const struct option_row *rows, const void *options, json_t *body)
{
    for (const struct option_row *row = rows; row->spec.name != NULL; row++) {
        json_t *value = row->sent_as != NULL ? value_of(row, (const char *)options + row->offset) : NULL;
        if (value != NULL) {
            json_object_set_new(body, row->sent_as, value);
        }
    }
}

static bool can_send(const struct option_row *rows, const void *options, struct err *err)
{
    for (const struct option_row *row = rows; row->spec.name != NULL; row++) {
        const char *const *text = (const void *)((const char *)options + row->offset);
        bool given = row->sent_as != NULL && row->spec.kind == OPTION_TEXT && *text != NULL;
        autojson json_t *value = given ? json_string(*text) : NULL;
        if (given && value == NULL) {
            return err_field(err, ERR_USAGE, row->spec.name, NULL, "--%s is not UTF-8", row->spec.name);
        }
    }
    return true;
}

bool verb_can_send(const struct verb *verb, const void *options, struct err *err)
{
    bool good = true;
    for (size_t i = 0; good && verb->rows[i] != NULL; i++) {
        good = can_send(verb->rows[i], options, err);
    }
    return good;
}

/* A letter of the last option is free for it only if no option before has it: squeue's -h is not --help. */
static void drop_letter(struct option_table *table)
{
    struct option_spec *last = &table->items[table->count - 1];
    for (struct option_spec *spec = table->items; spec < last; spec++) {
        if (spec->letter == last->letter) {
            last->letter = 0;
        }
    }
}

void option_table_add(struct option_table *table, const struct option_row *rows, void *options)
{
    for (const struct option_row *row = rows; row->spec.name != NULL; row++) {
        table->items = xrealloc(table->items, (table->count + 1) * sizeof table->items[0]);
        struct option_spec *spec = &table->items[table->count++];
        *spec = row->spec;
        spec->target = (char *)(row->is_common ? table->common : options) + row->offset;
        set_absent(row, spec->target);
        drop_letter(table);
    }
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

void verb_describe_common(struct common *common, struct option_table *ret_table)
{
    *ret_table = (struct option_table){.common = common};
    option_table_add(ret_table, rows_format, common);
    option_table_add(ret_table, rows_controller, common);
    option_table_add(ret_table, rows_state, common);
    option_table_add(ret_table, rows_help, common);
}

static bool refuse_common(const char *path, const char *name, struct err *err)
{
    err_set(err, ERR_USAGE, "%s does not take --%s", path, name);
    return err_hint(err, "see %s --help", path);
}

static bool takes_format(const struct verb *verb)
{
    bool found = false;
    for (size_t i = 0; verb->rows[i] != NULL; i++) {
        for (const struct option_row *row = verb->rows[i]; row->spec.name != NULL; row++) {
            found |= row->is_common && row->offset == offsetof(struct common, format);
        }
    }
    return found;
}

bool verb_takes(const struct verb *verb, const struct common *common, const char *path, struct err *err)
{
    const char *given = common->context != NULL      ? "context"
                        : common->url != NULL        ? "url"
                        : common->token_file != NULL ? "token-file"
                        : common->cacert != NULL     ? "cacert"
                                                     : NULL;
    given = given == NULL && common->insecure_plain_http ? "insecure-plain-http" : given;
    if (given != NULL && verb->reach != REACH_CONTROLLER) {
        return refuse_common(path, given, err);
    }
    if (common->format != NULL && !takes_format(verb)) {
        return refuse_common(path, "output", err);
    }
    return common->state == NULL || verb->reach == REACH_STATE || refuse_common(path, "state", err);
}

void verb_describe(const struct verb *verb, void *options, struct common *common,
                   struct option_table *ret_table)
{
    *ret_table = (struct option_table){.common = common};
    common->format = common->format != NULL ? common->format : "table";
    for (size_t i = 0; verb->rows[i] != NULL; i++) {
        option_table_add(ret_table, verb->rows[i], options);
    }
    if (verb->reach == REACH_CONTROLLER) {
        option_table_add(ret_table, rows_controller, common);
    }
    if (verb->reach == REACH_STATE) {
        option_table_add(ret_table, rows_state, common);
    }
    option_table_add(ret_table, rows_help, common);
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
