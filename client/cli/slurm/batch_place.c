/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the options of a batch script about when and where it may run: dependencies, hold, priority,
 * nodes and features. It promises to refuse an option that would mean another order or other nodes here. The
 * controller knows which jobs and nodes exist. */
#include "client/cli/slurm/batch.h"

#include <string.h>

#include "client/cli/spec/spec.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/states.h"

#define LIMIT_NICE 2147483645 /* Slurm's */

/* --- dependencies --- */

static bool refuse_dependency(const char *text, struct err *err)
{
    return err_field(err, ERR_USAGE, "dependency",
                     "write afterok:ID, afterany:ID or after:ID; a comma for several, that must all be met",
                     "--dependency \"%s\" is not supported", text);
}

/* "afterok:ID:ID" */
static bool add_condition(json_t *after, const char *text, struct err *err)
{
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    const char *kind = strsep(&rest, ":");
    enum dependency when;
    if (rest == NULL || !dependency_from_text(kind, &when)) {
        return refuse_dependency(text, err);
    }
    for (const char *job; (job = strsep(&rest, ":")) != NULL;) {
        if (job[0] == '\0' || job[strcspn(job, "+?_")] != '\0') {
            return refuse_dependency(text, err);
        }
        json_array_append_new(after, json_pack("{s:s, s:s}", "job", job, "when", kind));
    }
    return true;
}

static bool set_dependency(const char *list, json_t *spec, struct err *err)
{
    if (list == NULL) {
        return true;
    }
    autofree char *copy = xstrdup(list);
    char *rest = copy;
    json_t *after = json_array();
    json_object_set_new(spec, "after", after);
    for (const char *condition; (condition = strsep(&rest, ",")) != NULL;) {
        if (!add_condition(after, condition, err)) {
            return false;
        }
    }
    return true;
}

/* --- priority --- */

static bool take_priority(const char *text, json_t *spec, struct err *err)
{
    int64_t priority;
    if (!text_to_int(text, -LIMIT_PRIORITY, LIMIT_PRIORITY, &priority)) {
        return err_field(err, ERR_USAGE, "priority", "0 is what jobs have without it",
                         "--priority must be from -%d to %d, not \"%s\"", LIMIT_PRIORITY, LIMIT_PRIORITY,
                         text);
    }
    json_object_set_new(spec, "priority", json_integer(priority));
    return true;
}

/* A nice job lets others go first. */
static bool take_nice(const char *text, json_t *spec, struct notes *notes, struct err *err)
{
    int64_t nice;
    if (!text_to_int(text, -LIMIT_NICE, LIMIT_NICE, &nice)) {
        return err_field(err, ERR_USAGE, "nice", "100 for instance", "--nice \"%s\" is no number", text);
    }
    int64_t within = nice > LIMIT_PRIORITY ? LIMIT_PRIORITY : nice < -LIMIT_PRIORITY ? -LIMIT_PRIORITY : nice;
    if (within != nice) {
        notes_add(notes, "--nice %s: the priority is %lld, which is as far as it goes", text,
                  (long long)-within);
    }
    json_object_set_new(spec, "priority", json_integer(-within));
    return true;
}

static bool set_priority(const struct batch_options *options, json_t *spec, struct notes *notes,
                         struct err *err)
{
    if (options->nice != NULL && options->priority != NULL) {
        return err_field(err, ERR_USAGE, "priority", "leave one of the two out",
                         "--nice and --priority contradict each other");
    }
    return (options->nice == NULL || take_nice(options->nice, spec, notes, err)) &&
           (options->priority == NULL || take_priority(options->priority, spec, err));
}

/* --- nodes --- */

static bool set_exclude(const char *nodes, json_t *spec, struct err *err)
{
    if (nodes == NULL) {
        return true;
    }
    if (nodes[strcspn(nodes, "[/")] != '\0') {
        return err_field(err, ERR_USAGE, "exclude", "name each node: node1,node2",
                         "--exclude \"%s\": ranges and files of nodes are not supported", nodes);
    }
    json_t *exclude = json_array();
    spec_add_words(exclude, nodes);
    json_object_set_new(spec, "exclude", exclude);
    return true;
}

/* "zone=a|b" is zone=a,b to us. A feature without a value says nothing of labels. */
static bool add_feature(json_t *constraints, const char *text, struct err *err)
{
    autofree char *item = xstrdup(text);
    const char *bar = strchr(item, '|');
    if (text[strcspn(text, "[]*()")] != '\0' || strchr(text, '=') == NULL ||
        (bar != NULL && strchr(bar, '=') != NULL)) {
        return err_field(err, ERR_USAGE, "constraint",
                         "features are labels here: zone=a, zone=a|b for any of them, zone!=a, and & between",
                         "--constraint \"%s\" is not supported", text);
    }
    for (char *at = item; (at = strchr(at, '|')) != NULL;) {
        *at = ',';
    }
    return spec_add_constraint(constraints, item, err);
}

static bool set_constraint(const char *features, json_t *spec, struct err *err)
{
    if (features == NULL) {
        return true;
    }
    autofree char *copy = xstrdup(features);
    char *rest = copy;
    json_t *constraints = json_object();
    json_object_set_new(spec, "constraints", constraints);
    for (const char *feature; (feature = strsep(&rest, "&")) != NULL;) {
        if (!add_feature(constraints, feature, err)) {
            return false;
        }
    }
    return true;
}

bool batch_place(const struct batch_options *options, json_t *spec, struct notes *notes, struct err *err)
{
    if (options->hold) {
        json_object_set_new(spec, "hold", json_true());
    }
    return set_dependency(options->dependency, spec, err) && set_priority(options, spec, notes, err) &&
           set_exclude(options->exclude, spec, err) && set_constraint(options->constraint, spec, err);
}
