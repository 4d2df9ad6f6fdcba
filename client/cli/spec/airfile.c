/* SPDX-License-Identifier: Apache-2.0 */
/* Translates job files of `air`. It promises that no field is dropped in silence: each is honoured, refused
 * with its remedy, or, where the person said so, noted. The command runs once per node, as in `air`:
 * WORLD_SIZE is the number of GPUs over all nodes, LOCAL_WORLD_SIZE the number of one node. */
#include "client/cli/spec/airfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/spec/jobfile.h"
#include "client/cli/spec/requirements.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"

/* --- code_source --- */

/* root_path of the new form, or of the old one with its snapshot; NULL with the error. */
static const char *root_of(const char *field, const json_t *value, struct err *err)
{
    const json_t *snapshot = json_object_get(value, "snapshot");
    const json_t *holder = snapshot != NULL ? snapshot : value;
    const char *name;
    json_t *member;
    json_object_foreach ((json_t *)(uintptr_t)holder, name, member) {
        bool known = strcmp(name, "root_path") == 0 || (snapshot == NULL && strcmp(name, "type") == 0);
        if (!known) {
            autofree char *path = xprintf("%s.%s%s", field, snapshot != NULL ? "snapshot." : "", name);
            err_field(err, ERR_USAGE, path, "check the code out, and name its folder as root_path",
                      "%s is not supported", path);
            return NULL;
        }
    }
    const char *root = json_string_of(holder, "root_path");
    if (root == NULL || root[0] == '\0' || root[0] == '/') {
        err_field(err, ERR_USAGE, field, NULL, "%s.root_path must name a folder, from the job file's own",
                  field);
        return NULL;
    }
    return root;
}

static bool codesource_take(const char *folder, const char *field, const json_t *value, json_t *spec,
                            struct err *err)
{
    const char *root = root_of(field, value, err);
    if (root == NULL) {
        return false;
    }
    autofree char *source = xprintf("%s/%s", folder, root);
    json_object_set_new(spec, "bundle", json_pack("{s:s}", "source", source));
    return true;
}

#define PARAMETERS_FILE "parameters.json"
#define PRIORITY_STEP   100 /* between the classes */

/* What air gives the command beyond our own variables. */
#define PROLOGUE "export WORLD_SIZE=$((NNODES * LOCAL_WORLD_SIZE)) CODE_SOURCE_PATH=$PWD\n"

struct air {
    const struct yaml *yaml;
    bool ignore;
    const char *folder;
    json_t *spec; /* borrowed */
    struct notes *notes;
    char *gpu_type; /* of accelerator_type */
    int64_t per_node, gpus;
    bool has_pool;
    struct err *err;
};

/* One field of a map. take gets a value that is not null; without take the field is not supported, and remedy
 * says what to do instead. */
struct air_field {
    const char *name;
    bool (*take)(struct air *air, const char *field, json_t *value);
    const char *remedy;
};

/* --- values --- */

static bool need_text(struct air *air, const char *field, const json_t *value)
{
    return json_string_length(value) > 0 ||
           err_field(air->err, ERR_USAGE, field, NULL, "%s must be a text", field);
}

static bool need_count(struct air *air, const char *field, const json_t *value, int64_t min, int64_t max)
{
    bool good =
        json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max;
    return good || err_field(air->err, ERR_USAGE, field, NULL, "%s must be a whole number from %lld to %lld",
                             field, (long long)min, (long long)max);
}

static bool not_supported(struct air *air, const char *field, const char *remedy)
{
    if (air->ignore) {
        notes_add(air->notes, "%s is left out; %s", field, remedy);
        return true;
    }
    autofree char *hint = xprintf("%s, and leave it out with --ignore-unsupported", remedy);
    return err_field(air->err, ERR_USAGE, field, hint, "%s is not supported", field);
}

/* --- maps --- */

static bool take_field(struct air *air, const char *prefix, const char *name, json_t *value,
                       const struct air_field *fields, size_t count)
{
    autofree char *path = xprintf("%s%s", prefix, name);
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0) {
            return json_is_null(value)      ? true
                   : fields[i].take == NULL ? not_supported(air, path, fields[i].remedy)
                                            : fields[i].take(air, path, value);
        }
        nearest_try(&nearest, fields[i].name);
    }
    nearest_refuse(&nearest, path, air->err);
    return nearest.name != NULL ? false : err_hint(air->err, "leave it out");
}

static bool take_map(struct air *air, const char *prefix, json_t *object, const struct air_field *fields,
                     size_t count)
{
    const char *name;
    json_t *value;
    json_object_foreach (object, name, value) {
        if (!take_field(air, prefix, name, value, fields, count)) {
            return false;
        }
    }
    return true;
}

static bool need_map(struct air *air, const char *field, const json_t *value)
{
    return json_is_object(value) || err_field(air->err, ERR_USAGE, field, NULL, "%s must be a map", field);
}

/* --- compute --- */

/* "GPU_8xH100" */
static bool take_accelerator(struct air *air, const char *field, json_t *value)
{
    const char *text = json_string_value(value);
    bool known = text != NULL && strncmp(text, "GPU_", 4) == 0;
    const char *cross = known ? strchr(text, 'x') : NULL;
    autofree char *count = cross != NULL ? xstrndup(text + 4, (size_t)(cross - text - 4)) : NULL;
    if (count == NULL || !text_to_int(count, 1, LIMIT_GPUS, &air->per_node) ||
        !text_is_name(cross + 1, LIMIT_NAME_BYTES)) {
        return err_field(air->err, ERR_USAGE, field, "GPU_1xA10, GPU_1xH100 or GPU_8xH100 for instance",
                         "%s must name the GPUs of a node and their type", field);
    }
    free(air->gpu_type);
    air->gpu_type = xstrdup(cross + 1);
    return true;
}

static bool take_accelerators(struct air *air, const char *field, json_t *value)
{
    air->gpus = json_integer_value(value);
    return need_count(air, field, value, 1, LIMIT_GPUS);
}

static bool take_pool(struct air *air, const char *field, json_t *value)
{
    air->has_pool = true;
    json_object_set(air->spec, "pool", value);
    return need_text(air, field, value);
}

static bool take_priority(struct air *air, const char *field, json_t *value)
{
    static const char *const classes[] = {"BEST_EFFORT", "NORMAL", "CRITICAL"};
    for (int i = 0; i < 3; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), classes[i]) == 0) {
            json_object_set_new(air->spec, "priority", json_integer((i - 1) * PRIORITY_STEP));
            return true;
        }
    }
    return err_field(air->err, ERR_USAGE, field, NULL, "%s must be BEST_EFFORT, NORMAL or CRITICAL", field);
}

static bool take_compute(struct air *air, const char *field, json_t *value)
{
    static const struct air_field fields[] = {
        {"accelerator_type", take_accelerator, NULL},
        {"num_accelerators", take_accelerators, NULL},
        {"pool_id", take_pool, NULL},
        {"priority_class", take_priority, NULL},
    };
    return need_map(air, field, value) &&
           take_map(air, "compute.", value, fields, sizeof fields / sizeof fields[0]);
}

/* --- environment --- */

static bool take_variables(struct air *air, const char *field, json_t *value)
{
    if (!need_map(air, field, value)) {
        return false;
    }
    jobfile_spell_out(air->yaml, field, value);
    json_object_update(json_object_in(air->spec, "env"), value);
    return true;
}

/* Lines of a requirements file, or one of them. */
static bool take_dependencies(struct air *air, const char *field, json_t *value)
{
    autojson json_t *one = json_is_string(value) ? json_pack("[O]", value) : NULL;
    const json_t *given = one != NULL ? one : value;
    if (!json_is_array(given)) {
        return err_field(air->err, ERR_USAGE, field, "[numpy==2.1.0, -r requirements.txt] for instance",
                         "%s must be a list of requirements", field);
    }
    json_t *lines = requirements_take(air->folder, given, field, air->err);
    if (lines != NULL) {
        json_object_set_new(json_object_in(air->spec, "environment"), "requirements", lines);
    }
    return lines != NULL;
}

static bool take_image(struct air *air, const char *field, json_t *value)
{
    json_object_set(air->spec, "image", value);
    return need_text(air, field, value);
}

static bool take_docker_image(struct air *air, const char *field, json_t *value)
{
    static const struct air_field fields[] = {{"url", take_image, NULL}};
    return need_map(air, field, value) && take_map(air, "environment.docker_image.", value, fields, 1);
}

static bool take_environment(struct air *air, const char *field, json_t *value)
{
    static const struct air_field fields[] = {
        {"env_variables", take_variables, NULL},
        {"version", NULL, "name the Python of the packages with --python-version"},
        {"dependencies", take_dependencies, NULL},
        {"secrets", NULL, "store each with `gpuctl secret set NAME`, ask for it with --secret NAME"},
        {"docker_image", take_docker_image, NULL},
    };
    return need_map(air, field, value) &&
           take_map(air, "environment.", value, fields, sizeof fields / sizeof fields[0]);
}

/* --- the rest --- */

/* The last part of "/Users/me/experiment". */
static void set_name(struct air *air, const char *field, const char *text)
{
    const char *slash = strrchr(text, '/');
    autofree char *name = jobfile_job_name(slash != NULL && slash[1] != '\0' ? slash + 1 : text);
    json_object_set_new(air->spec, "name", json_string(name));
    if (strcmp(name, text) != 0) {
        notes_add(air->notes, "%s: the job is named %s", field, name);
    }
}

static bool take_experiment(struct air *air, const char *field, json_t *value)
{
    if (!need_text(air, field, value)) {
        return false;
    }
    json_object_set(json_object_in(air->spec, "env"), "MLFLOW_EXPERIMENT_NAME", value);
    if (json_object_get(air->yaml->json, "mlflow_run_name") == NULL) {
        set_name(air, field, json_string_value(value));
    }
    return true;
}

static bool take_run_name(struct air *air, const char *field, json_t *value)
{
    if (!need_text(air, field, value)) {
        return false;
    }
    set_name(air, field, json_string_value(value));
    return true;
}

static bool take_command(struct air *air, const char *field, json_t *value)
{
    if (!need_text(air, field, value)) {
        return false;
    }
    autofree char *text = xprintf(PROLOGUE "%s", json_string_value(value));
    json_object_set_new(air->spec, "command", jobfile_shell(text));
    return true;
}

static bool take_parameters(struct air *air, const char *field, json_t *value)
{
    json_t *files = json_object_get(air->spec, "files");
    if (!need_map(air, field, value)) {
        return false;
    }
    if (files == NULL) {
        files = json_array();
        json_object_set_new(air->spec, "files", files);
    }
    autofree char *text = json_dumps(value, JSON_INDENT(2) | JSON_SORT_KEYS);
    json_array_append_new(files, json_pack("{s:s,s:s}", "path", PARAMETERS_FILE, "text", text));
    json_object_set_new(json_object_in(air->spec, "env"), "PARAMETERS_FILE", json_string(PARAMETERS_FILE));
    return true;
}

static bool take_retries(struct air *air, const char *field, json_t *value)
{
    json_object_set(air->spec, "retries", value);
    return need_count(air, field, value, 0, LIMIT_RETRIES);
}

static bool take_timeout(struct air *air, const char *field, json_t *value)
{
    json_object_set_new(air->spec, "time_limit_s", json_integer(json_integer_value(value) * 60));
    return need_count(air, field, value, 1, LIMIT_TIME_MS / 60000);
}

static bool take_code(struct air *air, const char *field, json_t *value)
{
    return codesource_take(air->folder, field, value, air->spec, air->err);
}

static const struct air_field fields[] = {
    {"experiment_name", take_experiment, NULL},
    {"mlflow_run_name", take_run_name, NULL},
    {"compute", take_compute, NULL},
    {"command", take_command, NULL},
    {"environment", take_environment, NULL},
    {"code_source", take_code, NULL},
    {"parameters", take_parameters, NULL},
    {"max_retries", take_retries, NULL},
    {"timeout_minutes", take_timeout, NULL},
    {"usage_policy_name", NULL, "name a project with --project"},
    {"mlflow_artifact_location", NULL, "have the program write where it should"},
};

/* What no field says alone. */
static bool check_whole(struct air *air)
{
    const char *missing = air->per_node == 0                              ? "compute.accelerator_type"
                          : air->gpus == 0                                ? "compute.num_accelerators"
                          : json_object_get(air->spec, "command") == NULL ? "command"
                          : json_object_get(air->spec, "name") == NULL    ? "experiment_name"
                                                                          : NULL;
    if (missing != NULL) {
        return err_field(air->err, ERR_USAGE, missing, NULL, "%s is missing", missing);
    }
    if (air->gpus % air->per_node != 0) {
        return err_field(air->err, ERR_USAGE, "compute.num_accelerators", "ask for whole nodes",
                         "compute.num_accelerators is no multiple of the %lld GPUs of a node",
                         (long long)air->per_node);
    }
    if (json_object_get(air->spec, "priority") != NULL && !air->has_pool) {
        return err_field(air->err, ERR_USAGE, "compute.priority_class", "name the pool, or leave it out",
                         "compute.priority_class needs compute.pool_id");
    }
    return true;
}

bool airfile_is_one(const json_t *json)
{
    return json_object_get(json, "compute") != NULL || json_object_get(json, "experiment_name") != NULL;
}

bool airfile_translate(const struct yaml *yaml, bool ignore, const char *folder, json_t *spec,
                       struct notes *notes, struct err *err)
{
    struct air air = {
        .yaml = yaml, .ignore = ignore, .folder = folder, .spec = spec, .notes = notes, .err = err};
    autojson json_t *json = json_deep_copy(yaml->json);
    bool good = take_map(&air, "", json, fields, sizeof fields / sizeof fields[0]) && check_whole(&air);
    if (good) {
        json_object_set_new(spec, "gpus", json_integer(air.gpus));
        json_object_set_new(spec, "gpu_type", json_string(air.gpu_type));
        json_object_set_new(spec, "launch_mode", json_string("node"));
    }
    free(air.gpu_type);
    return good;
}
