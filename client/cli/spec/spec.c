/* SPDX-License-Identifier: Apache-2.0 */
/* Translates options into a job spec. It promises to send a field only when somebody asked for it, so that
 * the defaults are the controller's. attach.c adds files, environment.c packages, bundle.c folders. */
#include "client/cli/spec/spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/cli/spec/short_forms.h"
#include "client/cli/spec/launcher.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/states.h"

/* --- options --- */

const struct option_row spec_rows[] = {
    ROW_INT(struct spec_options, gpus, 'g', "gpus", "N",
            "GPUs over all nodes, as many as ranks (default 1); 0: one rank without a GPU", 0, LIMIT_GPUS,
            .absent = NOT_GIVEN),
    ROW_TEXT(struct spec_options, cpus, 0, "cpus", "N",
             "CPUs over all nodes (default: those that belong to its GPUs)"),
    ROW_TEXT(struct spec_options, memory, 0, "memory", "SIZE", "likewise: 64G, 512M", .sent_as = "memory"),
    ROW_INT(struct spec_options, nodes, 0, "nodes", "N", "exactly so many nodes, each with as many GPUs", 1,
            LIMIT_ATTEMPT_NODES),
    ROW_INT(struct spec_options, gpus_per_node, 0, "gpus-per-node", "N", "of each node, in place of --gpus",
            1, LIMIT_NODE_DEVICES),
    ROW_TEXT(struct spec_options, gpu_type, 0, "gpu-type", "NAME",
             "of all of them, such as H100; H100|A100 takes the first that fits", .sent_as = "gpu_type"),
    ROW_TEXT(struct spec_options, pool, 0, "pool", "NAME", "of the nodes", .sent_as = "pool"),
    ROW_FLAG(struct spec_options, no_reserved, 0, "no-reserved", "not in a reserved pool"),
    ROW_FLAG(struct spec_options, reserved, 0, "reserved", "only in a reserved pool"),
    ROW_LIST(struct spec_options, constraints, 0, "constraint", "KEY=VALUE[,...]",
             "only nodes with such a label; KEY!=VALUE: only others"),
    ROW_LIST(struct spec_options, avoid, 0, "avoid", "NODE[,...]", "these nodes only when nothing else fits"),
    ROW_LIST(struct spec_options, exclude, 0, "exclude", "NODE[,...]", "never these nodes"),
    ROW_CHOICE(struct spec_options, placement, 0, "placement", "HOW", "few nodes, or many with equal shares",
               "pack|spread", .sent_as = "placement"),
    ROW_FLAG(struct spec_options, local, 0, "local", "on a node of this host"),
    ROW_LIST(struct spec_options, env, 'e', "env", "NAME[=VALUE]",
             "variable of the ranks; without a value, the one here"),
    ROW_LIST(struct spec_options, secrets, 0, "secret", "NAME[=VARIABLE][:file]",
             "secret for the ranks, in a variable or as a file; see `gpuctl secret`"),
    ROW_LIST(
        struct spec_options, volumes, 0, "volume", "NAME[:PATH][:ro]",
        "folder that the nodes have under this name; ranks find it at PATH, and ro forbids them to write"),
    ROW_TEXT(struct spec_options, checkpoint_volume, 0, "checkpoint-volume", "NAME",
             "the one of these volumes that has $GPUCTL_CHECKPOINT_DIR; the nodes share it",
             .sent_as = "checkpoint_volume"),
    ROW_TEXT(struct spec_options, image, 0, "image", "NAME",
             "container image whose files the ranks see: registry/name:tag or name@sha256:...",
             .sent_as = "image"),
    ROW_TEXT(struct spec_options, worker_image, 0, "worker-image", "NAME",
             "the same for all nodes but that of rank 0, where they need another one",
             .sent_as = "worker_image"),
    ROW_TEXT(struct spec_options, image_secret, 0, "image-secret", "NAME",
             "secret with which nodes pull it: the credentials of a registry, as docker login writes them",
             .sent_as = "image_secret"),
    ROW_LIST(
        struct spec_options, inputs, 0, "input", "[NAME=]URL[:PATH]",
        "https://, s3:// or volume:NAME/PATH: data that nodes fetch once; $GPUCTL_INPUT_NAME has its path"),
    ROW_TEXT(struct spec_options, job_file, 'f', "job-file", "FILE",
             "YAML that describes the job; options win over it"),
    ROW_FLAG(struct spec_options, ignore_unsupported, 0, "ignore-unsupported",
             "leave out of the job file what cannot be honoured"),
    ROW_LIST(struct spec_options, files, 0, "file", "LOCAL[:REMOTE]", "copy a file into the job's folder"),
    ROW_TEXT(struct spec_options, workdir, 0, "chdir", "DIR",
             "run there on the nodes (default: here, on a node of your own)"),
    ROW_TEXT(struct spec_options, python, 0, "python", "FILE", "the Python of the nodes",
             .sent_as = "python"),
    ROW_CHOICE(struct spec_options, launch_mode, 0, "launch-mode", "MODE",
               "one process a GPU, or one a node (the default for torchrun)", "process|node",
               .sent_as = "launch_mode"),
    ROW_TEXT(struct spec_options, requirements, 0, "requirements", "FILE",
             "install its packages on the nodes: a requirements.txt of pip"),
    ROW_TEXT(struct spec_options, python_version, 0, "python-version", "X.Y",
             "that the packages are installed for"),
    ROW_TEXT(struct spec_options, bundle, 0, "bundle", "DIR",
             "send the folder, without what its .gitignore names; the job runs in it"),
    ROW_LIST(struct spec_options, python_paths, 0, "python-path", "DIR",
             "folder in the bundle to import from, next to its top"),
    ROW_TEXT(struct spec_options, array.count, 0, "array", "N[%P]",
             "make N tasks of it, P of them at a time; see {task} below"),
    ROW_LIST(struct spec_options, array.sweep, 0, "sweep", "NAME=V,V",
             "a task for each value of {NAME}; several make all choices"),
    ROW_TEXT(struct spec_options, name, 'n', "name", "NAME", "of the job", .sent_as = "name"),
    ROW_LIST(struct spec_options, labels, 0, "label", "KEY=VALUE", "to find it by"),
    ROW_TEXT(struct spec_options, project, 0, "project", "NAME", "it belongs to", .sent_as = "project"),
    ROW_TEXT(struct spec_options, key, 0, "key", "KEY", "Idempotency-Key: the same key never makes two jobs"),
    ROW_INT(struct spec_options, priority, 0, "priority", "N", "higher goes first", -LIMIT_PRIORITY,
            LIMIT_PRIORITY, .absent = SPEC_NO_PRIORITY, .sent_as = "priority"),
    ROW_DURATION(struct spec_options, time_ms, 't', "time", "limit: 90s, 15m, 2h", .absent = NOT_GIVEN,
                 .sent_as = "time_limit_s"),
    ROW_DURATION(struct spec_options, grace_ms, 0, "grace", "from TERM to KILL", .absent = NOT_GIVEN,
                 .sent_as = "grace_s"),
    ROW_DURATION(struct spec_options, keep_ms, 0, "keep-on-failure",
                 "keep the nodes when a rank failed, to look with `gpuctl exec`: 1h", .absent = NOT_GIVEN,
                 .sent_as = "keep_on_failure_s"),
    ROW_TEXT(struct spec_options, early_signal, 0, "early-signal", "SIGNAL[@TIME]",
             "sent TIME (60s) before the limit, and on preemption: USR1@2m"),
    ROW_INT(struct spec_options, retries, 0, "retries", "N", "attempts after the program failed", 0,
            LIMIT_RETRIES, .absent = NOT_GIVEN, .sent_as = "retries"),
    ROW_INT(struct spec_options, infra_retries, 0, "infra-retries", "N", "attempts after a node failed", 0,
            LIMIT_RETRIES, .absent = NOT_GIVEN, .sent_as = "infra_retries"),
    ROW_CHOICE(struct spec_options, on_disconnect, 0, "on-disconnect", "RULE", "when a node is not heard",
               "keep|requeue|fail", .sent_as = "on_disconnect"),
    ROW_DURATION(struct spec_options, lease_ms, 0, "lease", "how long a node may be silent",
                 .absent = NOT_GIVEN, .sent_as = "lease_s"),
    ROW_TEXT(struct spec_options, not_before, 0, "not-before", "WHEN",
             "do not begin before a moment: +2h, or 2026-11-21T09:30:00Z"),
    ROW_LIST(struct spec_options, after, 0, "after", "JOB[:WHEN]",
             "wait until that job, an id or a name, has started (after), succeeded (afterok, the default) or "
             "ended (afterany)"),
    ROW_LIST(struct spec_options, notify, 0, "notify", "WEBHOOK[,...]",
             "tell these of it, by id or name; see `gpuctl webhooks`"),
    ROW_FLAG(struct spec_options, hold, 0, "hold", "keep it back until `gpuctl release`", .sent_as = "hold"),
    ROWS_END};

/* --- the spec --- */

static void set_text(json_t *spec, const char *name, const char *value)
{
    if (value != NULL) {
        json_object_set_new(spec, name, json_string(value));
    }
}

/* The words that Databricks takes for no, and for yes, which leaves the choice to the controller. */
static bool is_one_of(const char *word, const char *const *words)
{
    while (*words != NULL && strcasecmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

static bool set_reserved_from(json_t *spec, const char *word, struct err *err)
{
    static const char *const no[] = {"false", "0", "no", "off", NULL};
    static const char *const yes[] = {"true", "1", "yes", "on", "", NULL};
    if (word == NULL || json_object_get(spec, "use_reserved_pool") != NULL || is_one_of(word, yes)) {
        return true;
    }
    if (!is_one_of(word, no)) {
        return err_field(err, ERR_USAGE, "DATABRICKS_USE_RESERVED_GPU_POOL", "set it to true or to false",
                         "DATABRICKS_USE_RESERVED_GPU_POOL must be true or false, it is %.100s", word);
    }
    json_object_set_new(spec, "use_reserved_pool", json_false());
    return true;
}

static bool set_reserved(json_t *spec, const struct spec_options *options, const char *from_environment,
                         struct err *err)
{
    if (options->reserved && options->no_reserved) {
        return err_field(err, ERR_USAGE, "reserved", "give one of the two",
                         "--reserved and --no-reserved exclude each other");
    }
    if (options->reserved || options->no_reserved) {
        json_object_set_new(spec, "use_reserved_pool", json_boolean(options->reserved));
        return true;
    }
    return set_reserved_from(spec, from_environment, err);
}

/* Texts that are no UTF-8 cannot travel in JSON. */
static bool set_pair(json_t *object, const char *name, size_t length, const char *value, const char *option,
                     struct err *err)
{
    autofree char *key = xstrndup(name, length);
    if (length == 0) {
        return err_field(err, ERR_USAGE, option, "write NAME=VALUE", "--%s \"%s\" has no name", option, name);
    }
    if (json_object_set_new(object, key, json_string(value)) != 0) {
        return err_field(err, ERR_USAGE, option, "put such bytes into a file", "--%s %s is not UTF-8", option,
                         key);
    }
    return true;
}

/* A copy of what the base has, for options to be added to. */
static json_t *begin_object(const json_t *spec, const char *name)
{
    const json_t *base = json_object_get(spec, name);
    return json_is_object(base) ? json_deep_copy(base) : json_object();
}

/* NAME=VALUE of each item; where there is no value, `absent` finds one or refuses. */
static bool set_pairs(json_t *spec, const char *member, const char *option, const struct option_list *list,
                      const char *(*absent)(const char *item, struct err *err), struct err *err)
{
    autojson json_t *object = begin_object(spec, member);
    for (size_t i = 0; i < list->count; i++) {
        const char *item = list->items[i];
        size_t length = strcspn(item, "=");
        const char *value = item[length] == '=' ? item + length + 1 : absent(item, err);
        if (value == NULL || !set_pair(object, item, length, value, option, err)) {
            return false;
        }
    }
    if (list->count > 0) {
        json_object_set(spec, member, object);
    }
    return true;
}

static const char *value_here(const char *item, struct err *err)
{
    const char *value = getenv(item);
    if (value == NULL) {
        err_field(err, ERR_USAGE, "env", "set it, or write --env NAME=VALUE",
                  "--env %s: there is no such variable here", item);
    }
    return value;
}

static const char *refuse_bare(const char *item, struct err *err)
{
    err_field(err, ERR_USAGE, "label", "write --label KEY=VALUE", "--label \"%s\" has no value", item);
    return NULL;
}

/* Appends the words between commas. A word that is not UTF-8 becomes an empty one, which is refused. */
void spec_add_words(json_t *array, const char *text)
{
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        json_t *item = json_string(word);
        json_array_append_new(array, item != NULL ? item : json_string(""));
    }
}

/* "zone=a,b" or "disk!=hdd", into {"zone": {"in": ["a", "b"]}, "disk": {"not": ["hdd"]}}. */
bool spec_add_constraint(json_t *constraints, const char *item, struct err *err)
{
    size_t length = strcspn(item, "=!");
    bool unwanted = item[length] == '!';
    const char *values = item + length + unwanted;
    if (length == 0 || *values != '=') {
        return err_field(err, ERR_USAGE, "constraint",
                         "write --constraint zone=a, zone=a,b for any of them, or zone!=a",
                         "--constraint \"%s\" is no KEY=VALUE", item);
    }
    autofree char *key = xstrndup(item, length);
    json_t *sides = json_object_in(constraints, key);
    const char *side = unwanted ? "not" : "in";
    json_t *array = json_object_get(sides, side);
    if (array == NULL) {
        array = json_array();
        json_object_set_new(sides, side, array);
    }
    spec_add_words(array, values + 1);
    return true;
}

/* The options about a label replace the constraints of the base on it. */
static bool set_constraints(json_t *spec, const struct option_list *list, struct err *err)
{
    autojson json_t *all = begin_object(spec, "constraints");
    autojson json_t *given = json_object();
    for (size_t i = 0; i < list->count; i++) {
        if (!spec_add_constraint(given, list->items[i], err)) {
            return false;
        }
    }
    json_object_update(all, given);
    if (list->count > 0) {
        json_object_set(spec, "constraints", all);
    }
    return true;
}

static void set_nodes(json_t *spec, const char *name, const struct option_list *list)
{
    json_t *nodes = list->count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < list->count; i++) {
        spec_add_words(nodes, list->items[i]);
    }
    if (nodes != NULL) {
        json_object_set_new(spec, name, nodes);
    }
}

/* torchrun starts the ranks of a node: one in each rank would make worlds of their own. */
static void set_launch_mode(json_t *spec)
{
    if (json_object_get(spec, "launch_mode") == NULL &&
        launcher_is_torchrun(json_object_get(spec, "command"))) {
        json_object_set_new(spec, "launch_mode", json_string(launch_mode_text(LAUNCH_NODE)));
    }
}

static bool set_command(json_t *spec, char **command, size_t count, struct err *err)
{
    if (count == 0) { /* the base has one */
        return true;
    }
    json_object_del(spec, "function");
    json_t *words = json_array();
    json_object_set_new(spec, "command", words);
    for (size_t i = 0; i < count; i++) {
        if (json_array_append_new(words, json_string(command[i])) != 0) {
            return err_field(err, ERR_USAGE, "command", "put such bytes into a file",
                             "word %zu of the command is not UTF-8", i + 1);
        }
    }
    return true;
}

/* Files and bundles are laid into the job's own folder, and the program is to find them there: then `here` is
 * no default. */
static void set_workdir(json_t *spec, const struct spec_options *options, const char *here)
{
    const char *workdir = options->workdir;
    if (workdir == NULL) {
        bool settled = options->files.count > 0 || json_object_get(spec, "files") != NULL ||
                       json_object_get(spec, "bundle") != NULL || json_object_get(spec, "workdir") != NULL ||
                       json_object_get(spec, "image") != NULL;
        set_text(spec, "workdir", settled ? NULL : here);
    } else if (workdir[0] != '/' && here != NULL) {
        autofree char *absolute = xprintf("%s/%s", here, workdir);
        set_text(spec, "workdir", absolute);
    } else {
        set_text(spec, "workdir", workdir);
    }
}

/* Names the folder; bundle.c packs it. Options for it win over a job file's one by one. */
static bool set_bundle(json_t *spec, const struct spec_options *options, struct err *err)
{
    if (options->bundle == NULL && options->python_paths.count == 0) {
        return true;
    }
    autojson json_t *bundle = begin_object(spec, "bundle");
    if (options->bundle != NULL) {
        json_object_clear(bundle);
    } else if (json_object_size(bundle) == 0) {
        return err_field(err, ERR_USAGE, "python-path", "name the folder that it is in with --bundle DIR",
                         "--python-path is about a bundle, and there is none");
    }
    set_text(bundle, "source", options->bundle);
    json_t *paths = options->python_paths.count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < options->python_paths.count; i++) {
        json_array_append_new(paths, json_string(options->python_paths.items[i]));
    }
    if (paths != NULL) {
        json_object_set_new(bundle, "python_path", paths);
    }
    json_object_set_new(spec, "bundle", give(bundle));
    return true;
}

/* How many GPUs in all, and over how many nodes, by any two of three. */
static bool set_shape(json_t *spec, const struct spec_options *options, struct err *err)
{
    int64_t each = options->gpus_per_node, nodes = options->nodes, gpus = options->gpus;
    if (each > 0) {
        nodes = nodes > 0 ? nodes : gpus > 0 ? gpus / each : 1;
        if (gpus >= 0 && gpus != nodes * each) {
            return err_field(err, ERR_USAGE, "gpus-per-node",
                             "give two of --gpus, --nodes and --gpus-per-node",
                             "%lld GPUs are not %lld on each of %lld nodes", (long long)gpus, (long long)each,
                             (long long)nodes);
        }
        gpus = nodes * each;
    }
    bool asked = json_object_get(spec, "gpus") != NULL;
    if (gpus < 0 && nodes > 0 && !asked) {
        gpus = nodes;
    }
    if (gpus >= 0 || !asked) {
        json_object_set_new(spec, "gpus", json_integer(gpus >= 0 ? gpus : 1));
    }
    if (nodes > 0) {
        json_object_set_new(spec, "nodes", json_integer(nodes));
    }
    return true;
}

static bool set_cpus(json_t *spec, const char *text, struct err *err)
{
    char *end = NULL;
    double cpus = text != NULL ? strtod(text, &end) : 0;
    if (text != NULL && (end == text || *end != '\0' || !isfinite(cpus))) {
        return err_field(err, ERR_USAGE, "cpus", "give 8 or 0.5 for instance", "--cpus %s is not a number",
                         text);
    }
    if (text != NULL) {
        json_object_set_new(spec, "cpus",
                            floor(cpus) == cpus && fabs(cpus) < 1e15 ? json_integer((json_int_t)cpus)
                                                                     : json_real(cpus));
    }
    return true;
}

/* A URL may have commas. */
static void set_inputs(json_t *spec, const struct option_list *list)
{
    json_t *inputs = list->count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(inputs, json_string(list->items[i]));
    }
    if (inputs != NULL) {
        json_object_set_new(spec, "inputs", inputs);
    }
}

static void set_place(json_t *spec, const struct spec_options *options,
                      const struct spec_surroundings *around)
{
    set_nodes(spec, "avoid", &options->avoid);
    set_nodes(spec, "exclude", &options->exclude);
    set_nodes(spec, "notify", &options->notify);
    set_nodes(spec, "secrets", &options->secrets);
    set_nodes(spec, "volumes", &options->volumes);
    set_inputs(spec, &options->inputs);
    if (options->local) {
        json_object_set_new(spec, "remote", json_false());
    }
    if (json_is_false(json_object_get(spec, "remote")) && json_object_get(spec, "host_id") == NULL) {
        set_text(spec, "host_id", around->host_id);
    }
    set_workdir(spec, options, around->here);
}

static bool set_early_signal(json_t *spec, const char *text, struct err *err)
{
    json_t *early = text != NULL ? early_read("early-signal", text, err) : NULL;
    if (early != NULL) {
        json_object_set_new(spec, "early_signal", early);
    }
    return text == NULL || early != NULL;
}

static bool set_moment(json_t *spec, const char *text, struct err *err)
{
    int64_t at_ms;
    char moment[32];
    if (text == NULL) {
        return true;
    }
    if (!text_to_moment_ms(text, clock_wall_ms(), &at_ms)) {
        return err_field(err, ERR_USAGE, "not-before", "write +2h, or 2026-11-21T09:30:00Z",
                         "--not-before \"%s\" is no moment", text);
    }
    clock_format_wall(at_ms, moment, sizeof moment);
    json_object_set_new(spec, "not_before", json_string(moment));
    return true;
}

/* The output of many jobs is not shown as that of one. */
static bool refuse_array(const json_t *spec, struct err *err)
{
    return !array_asked(spec) ||
           err_field(err, ERR_USAGE, "array",
                     "use `gpuctl submit`, then `gpuctl wait ID` and `gpuctl logs ID.0`",
                     "run and notebook are for one job, and this is an array of them");
}

json_t *spec_build(const struct spec_options *options, const struct spec_surroundings *around, char **command,
                   size_t count, struct err *err)
{
    autojson json_t *spec = around->base != NULL ? json_deep_copy(around->base) : json_object();
    if (!set_bundle(spec, options, err) || !set_shape(spec, options, err) ||
        !set_cpus(spec, options->cpus, err)) {
        return NULL;
    }
    option_send(spec_rows, options, spec);
    set_place(spec, options, around);
    bool good = set_command(spec, command, count, err) &&
                set_reserved(spec, options, around->reserved, err) &&
                set_pairs(spec, "env", "env", &options->env, value_here, err) &&
                set_pairs(spec, "labels", "label", &options->labels, refuse_bare, err) &&
                set_constraints(spec, &options->constraints, err) &&
                set_early_signal(spec, options->early_signal, err) && after_add(spec, &options->after, err) &&
                set_moment(spec, options->not_before, err) && array_put(&options->array, spec, err);
    set_launch_mode(spec);
    return good && (!around->one_job || refuse_array(spec, err)) ? give(spec) : NULL;
}
