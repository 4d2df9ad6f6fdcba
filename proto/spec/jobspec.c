/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes and encodes job specs: the fields, their types, limits and defaults. A decoded spec is consistent
 * in itself, a refusal names field and remedy, and a spec survives encode and decode. jobspec_parts.c checks
 * commands, environments, labels and files; jobspec_place.c checks where the job may run. The core decides
 * whether the cluster can serve a spec. */
#include "proto/spec/jobspec.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/amounts.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/spec/jobspec_place.h"
#include "proto/spec/node_label.h"
#include "proto/trace_context.h"
#include "proto/limits.h"
#include "proto/members.h"

/* One row per field: its name, its target, and the allowed values. decode is called only with values that are
 * not null. */
struct field {
    const char *name;
    size_t length;
    size_t offset;
    bool (*decode)(const struct field *field, json_t *value, struct job_spec *spec, struct err *err);
    int64_t min, max;
};

static void *place_of(const struct field *field, struct job_spec *spec)
{
    return (char *)spec + field->offset;
}

/* --- kinds of fields --- */

static bool decode_name(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    const char *name = json_string_value(value);
    if (name == NULL || !text_is_name(name, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_FIELD, field->name,
                         "letters, digits, '.', '_' and '-', a letter or digit first",
                         "%s must be a name of 1 to %d characters", field->name, LIMIT_NAME_BYTES);
    }
    *(const char **)place_of(field, spec) = name;
    return true;
}

static bool decode_path(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    size_t length = json_string_length(value);
    if (length == 0 || length > LIMIT_PATH_BYTES) {
        return err_field(err, ERR_FIELD, field->name, NULL, "%s must be a path of 1 to %d bytes", field->name,
                         LIMIT_PATH_BYTES);
    }
    *(const char **)place_of(field, spec) = json_string_value(value);
    return true;
}

static bool decode_hash(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    const char *hash = json_string_value(value);
    if (hash == NULL || !jobspec_is_hash(hash)) {
        return err_field(err, ERR_FIELD, field->name, NULL,
                         "%s must be a SHA-256 of 64 lower-case hex digits", field->name);
    }
    *(const char **)place_of(field, spec) = hash;
    return true;
}

static bool decode_id(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    const char *id = json_string_value(value);
    if (id == NULL || !text_is_id(id)) {
        return err_field(err, ERR_FIELD, field->name, NULL, "%s must be the id of a job", field->name);
    }
    *(const char **)place_of(field, spec) = id;
    return true;
}

static bool decode_int(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return json_read_int(spec->json, field->name, field->min, field->max, place_of(field, spec), err);
}

static bool decode_seconds(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return json_read_seconds(spec->json, field->name, field->min, field->max, place_of(field, spec), err);
}

static bool decode_bool(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return json_read_bool(spec->json, field->name, place_of(field, spec), err);
}

/* --- single fields --- */

static bool decode_gpus(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    int64_t gpus;
    if (json_whole(value, &gpus) && gpus < 0) {
        return err_field(err, ERR_FIELD, "gpus",
                         "give the total over all nodes; one rank is started for each, and one for 0",
                         "gpus must be at least 0, it is %lld", (long long)gpus);
    }
    return decode_int(field, value, spec, err);
}

static bool decode_cpus(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return cpus_decode(value, field->name, 1, &spec->millicpus, err);
}

static bool decode_memory(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return memory_decode(value, field->name, LIMIT_MEMORY_MIN_BYTES, &spec->memory_bytes, err);
}

static bool decode_reserved(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    if (!json_is_boolean(value)) {
        return err_field(err, ERR_FIELD, field->name, "null lets the controller choose",
                         "%s must be null, true or false", field->name);
    }
    spec->use_reserved_pool = json_is_true(value) ? USE_RESERVED_TRUE : USE_RESERVED_FALSE;
    return true;
}

#define CHOICE(name, spelling) " " spelling

static bool decode_launch_mode(const struct field *field, json_t *value, struct job_spec *spec,
                               struct err *err)
{
    const char *text = json_string_value(value);
    return (text != NULL && launch_mode_from_text(text, &spec->launch_mode)) ||
           err_field(err, ERR_FIELD, field->name, NULL, "%s must be one of:" LAUNCH_MODES(CHOICE),
                     field->name);
}

static bool decode_on_disconnect(const struct field *field, json_t *value, struct job_spec *spec,
                                 struct err *err)
{
    const char *text = json_string_value(value);
    return (text != NULL && on_disconnect_from_text(text, &spec->on_disconnect)) ||
           err_field(err, ERR_FIELD, field->name, NULL, "%s must be one of:" DISCONNECTS(CHOICE),
                     field->name);
}

static bool decode_placement(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    const char *text = json_string_value(value);
    return (text != NULL && placement_from_text(text, &spec->placement)) ||
           err_field(err, ERR_FIELD, field->name, NULL, "%s must be one of:" PLACEMENTS(CHOICE), field->name);
}

/* Joins an array of alternatives to one text, which replaces the array. */
static bool decode_types(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    autofree char *types = NULL;
    if (!jobspec_decode_types(value, &types, err)) {
        return false;
    }
    if (!json_is_string(value)) {
        value = json_string(types);
        json_object_set_new(spec->json, field->name, value);
    }
    spec->gpu_type = json_string_value(value);
    return true;
}

static bool decode_constraints(const struct field *field, json_t *value, struct job_spec *spec,
                               struct err *err)
{
    spec->constraints = value;
    return jobspec_check_constraints(value, err);
}

static bool decode_nodes(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    *(const json_t **)place_of(field, spec) = value;
    return jobspec_check_nodes(field->name, value, err);
}

static bool decode_command(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    spec->command = value;
    return jobspec_check_command(value, err);
}

static bool decode_env(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    spec->env = value;
    return jobspec_check_env(value, err);
}

static bool decode_secrets(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_secrets(value, &spec->secrets, &spec->secret_count, err);
}

static bool decode_labels(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    spec->labels = value;
    return jobspec_check_labels(value, err);
}

static bool decode_notify(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    spec->notify = value;
    size_t count = json_array_size(value);
    bool sound = json_is_array(value) && count <= LIMIT_JOB_NOTIFY;
    for (size_t i = 0; sound && i < count; i++) {
        const char *name = json_string_value(json_array_get(value, i));
        sound = name != NULL && text_is_name(name, LIMIT_NAME_BYTES);
    }
    return sound ||
           err_field(err, ERR_FIELD, field->name, "write [\"chat\"]; gpuctl webhooks list shows them",
                     "%s must be an array of at most %d ids or names of webhooks", field->name,
                     LIMIT_JOB_NOTIFY);
}

static bool decode_volumes(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_volumes(value, &spec->volumes, &spec->volume_count, err);
}

static bool decode_inputs(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_inputs(value, &spec->inputs, &spec->input_count, err);
}

static bool decode_files(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_files(value, &spec->files, &spec->file_count, err);
}

static bool decode_workdir(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    if (!decode_path(field, value, spec, err)) {
        return false;
    }
    return spec->workdir[0] == '/' ||
           err_field(err, ERR_FIELD, field->name,
                     "leave it out to run in the job's own folder, where its files are put",
                     "%s must be an absolute path on the nodes", field->name);
}

static bool decode_function(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_function(value, &spec->function, err);
}

static bool decode_environment(const struct field *field, json_t *value, struct job_spec *spec,
                               struct err *err)
{
    return jobspec_decode_environment(value, &spec->environment, err);
}

static bool decode_bundle(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_bundle(value, &spec->bundle, err);
}

static bool decode_moment(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    const char *text = json_string_value(value);
    return (text != NULL && text_to_wall_ms(text, &spec->not_before_ms) && spec->not_before_ms > 0) ||
           err_field(err, ERR_FIELD, field->name, "2026-11-21T09:30:00Z for instance",
                     "%s must be a moment of RFC 3339", field->name);
}

static bool decode_array(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_array(value, spec, err);
}

static bool decode_sweep(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    return jobspec_decode_sweep(value, spec, err);
}

static bool decode_early_signal(const struct field *field, json_t *value, struct job_spec *spec,
                                struct err *err)
{
    return jobspec_decode_early_signal(value, &spec->early_signal, err);
}

static bool decode_dependencies(const struct field *field, json_t *value, struct job_spec *spec,
                                struct err *err)
{
    return jobspec_decode_dependencies(value, &spec->dependencies, &spec->dependency_count, err);
}

static bool decode_image(const struct field *field, json_t *value, struct job_spec *spec, struct err *err)
{
    const char *image = json_string_value(value);
    *(const char **)((char *)spec + field->offset) = image;
    return image != NULL ? jobspec_check_image(field->name, image, err)
                         : err_field(err, ERR_FIELD, field->name, NULL, "%s must be a text", field->name);
}

static bool decode_image_secret(const struct field *field, json_t *value, struct job_spec *spec,
                                struct err *err)
{
    spec->image_secret = json_string_value(value);
    return (spec->image_secret != NULL && jobspec_is_secret_name(spec->image_secret)) ||
           err_field(err, ERR_FIELD, field->name, "gpuctl secret list shows them",
                     "%s must be the name of a secret", field->name);
}

static bool decode_traceparent(const struct field *field, json_t *value, struct job_spec *spec,
                               struct err *err)
{
    struct trace_parent unused;
    spec->traceparent = json_string_value(value);
    return (spec->traceparent != NULL && trace_parent_read(spec->traceparent, &unused)) ||
           err_field(err, ERR_FIELD, field->name,
                     "give 00-<32 hex digits>-<16 hex digits>-01, or leave it out",
                     "%s must be one of W3C Trace Context", field->name);
}

static bool decode_tracestate(const struct field *field, json_t *value, struct job_spec *spec,
                              struct err *err)
{
    spec->tracestate = json_string_value(value);
    return (spec->tracestate != NULL && trace_state_is_sound(spec->tracestate)) ||
           err_field(err, ERR_FIELD, field->name, "give vendor=value, or leave it out",
                     "%s must be a list of W3C Trace Context of at most %d bytes", field->name,
                     LIMIT_TRACE_STATE);
}

/* --- the table --- */

#define FIELD(name, member, decode, min, max)                                                                \
    {                                                                                                        \
        name, sizeof name - 1, offsetof(struct job_spec, member), decode, min, max                           \
    }

static const struct field fields[] = {
    FIELD("gpus", gpus, decode_gpus, 0, LIMIT_GPUS),
    FIELD("cpus", millicpus, decode_cpus, 0, 0),
    FIELD("memory", memory_bytes, decode_memory, 0, 0),
    FIELD("command", command, decode_command, 0, 0),
    FIELD("name", name, decode_name, 0, 0),
    FIELD("gpu_type", gpu_type, decode_types, 0, 0),
    FIELD("remote", remote, decode_bool, 0, 0),
    FIELD("use_reserved_pool", use_reserved_pool, decode_reserved, 0, 0),
    FIELD("pool", pool, decode_name, 0, 0),
    FIELD("constraints", constraints, decode_constraints, 0, 0),
    FIELD("avoid", avoid, decode_nodes, 0, 0),
    FIELD("exclude", exclude, decode_nodes, 0, 0),
    FIELD("placement", placement, decode_placement, 0, 0),
    FIELD("nodes", nodes, decode_int, 1, LIMIT_ATTEMPT_NODES),
    FIELD("launch_mode", launch_mode, decode_launch_mode, 0, 0),
    FIELD("env", env, decode_env, 0, 0),
    FIELD("secrets", secrets, decode_secrets, 0, 0),
    FIELD("volumes", volumes, decode_volumes, 0, 0),
    FIELD("checkpoint_volume", checkpoint_volume, decode_name, 0, 0),
    FIELD("inputs", inputs, decode_inputs, 0, 0),
    FIELD("labels", labels, decode_labels, 0, 0),
    FIELD("files", files, decode_files, 0, 0),
    FIELD("environment", environment, decode_environment, 0, 0),
    FIELD("bundle", bundle, decode_bundle, 0, 0),
    FIELD("image", image, decode_image, 0, 0),
    FIELD("worker_image", worker_image, decode_image, 0, 0),
    FIELD("image_secret", image_secret, decode_image_secret, 0, 0),
    FIELD("workdir", workdir, decode_workdir, 0, 0),
    FIELD("python", python, decode_path, 0, 0),
    FIELD("project", project, decode_name, 0, 0),
    FIELD("priority", priority, decode_int, -LIMIT_PRIORITY, LIMIT_PRIORITY),
    FIELD("time_limit_s", time_limit_ms, decode_seconds, 0, LIMIT_TIME_MS),
    FIELD("grace_s", grace_ms, decode_seconds, 0, LIMIT_GRACE_MS),
    FIELD("keep_on_failure_s", keep_ms, decode_seconds, 0, LIMIT_KEEP_MS),
    FIELD("early_signal", early_signal, decode_early_signal, 0, 0),
    FIELD("lease_s", lease_ms, decode_seconds, 0, LIMIT_LEASE_MAX_MS),
    FIELD("retries", retries, decode_int, 0, LIMIT_RETRIES),
    FIELD("infra_retries", infra_retries, decode_int, 0, LIMIT_RETRIES),
    FIELD("on_disconnect", on_disconnect, decode_on_disconnect, 0, 0),
    FIELD("after", dependencies, decode_dependencies, 0, 0),
    FIELD("not_before", not_before_ms, decode_moment, 0, 0),
    FIELD("hold", hold, decode_bool, 0, 0),
    FIELD("checkpoint_of", checkpoint_of, decode_id, 0, 0),
    FIELD("retry_of", retry_of, decode_id, 0, 0),
    FIELD("notify", notify, decode_notify, 0, 0),
    FIELD("host_id", host_id, decode_hash, 0, 0),
    FIELD("function", function, decode_function, 0, 0),
    FIELD("array", tasks, decode_array, 0, 0),
    FIELD("sweep", sweep, decode_sweep, 0, 0),
    FIELD("traceparent", traceparent, decode_traceparent, 0, 0),
    FIELD("tracestate", tracestate, decode_tracestate, 0, 0),
};
#define FIELDS (sizeof fields / sizeof fields[0])

static const struct field *find_field(const char *name, size_t length)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].length == length && memcmp(fields[i].name, name, length) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static bool refuse_unknown(const char *name, struct err *err)
{
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < FIELDS; i++) {
        nearest_try(&nearest, fields[i].name);
    }
    return nearest_refuse(&nearest, name, err);
}

/* --- the whole --- */

/* Checks that involve more than one field. */
static bool check_whole(const struct job_spec *spec, int64_t lease_min_ms, struct err *err)
{
    if (spec->gpus < 0) {
        return err_field(err, ERR_FIELD, "gpus", "give the total over all nodes, 1 for instance",
                         "gpus is missing");
    }
    if (spec->gpus == 0 && spec->gpu_type != NULL) {
        return err_field(err, ERR_FIELD, "gpu_type", "leave it out, or ask for a GPU",
                         "a job without GPUs has no gpu_type");
    }
    if (spec->millicpus > 0 && spec->millicpus < spec->gpus) {
        return err_field(err, ERR_FIELD, "cpus", "ask for more, or leave it out",
                         "cpus is %.15g, less than 0.001 for each of %lld GPUs",
                         (double)spec->millicpus / 1000, (long long)spec->gpus);
    }
    if (spec->memory_bytes > 0 && spec->memory_bytes / ranks_of_gpus(spec->gpus) < LIMIT_MEMORY_MIN_BYTES) {
        return err_field(err, ERR_FIELD, "memory", "ask for more, or leave it out",
                         "memory is less than 4M for each of %lld GPUs", (long long)spec->gpus);
    }
    if (spec->command == NULL && !job_spec_is_function(spec)) {
        return err_field(err, ERR_FIELD, "command",
                         "give an array of words, [\"python\", \"train.py\"] for instance; or a function",
                         "command is missing");
    }
    if (spec->command != NULL && job_spec_is_function(spec)) {
        return err_field(err, ERR_FIELD, "function", "leave one of them out",
                         "a job has a command or a function, not both");
    }
    if (spec->lease_ms < lease_min_ms) {
        return err_field(err, ERR_FIELD, "lease_s", NULL, "lease_s must be at least %.15g",
                         (double)lease_min_ms / 1000);
    }
    if (spec->time_limit_ms > 0 && spec->early_signal.before_ms >= spec->time_limit_ms) {
        return err_field(err, ERR_FIELD, "early_signal.before_s", "raise time_limit_s, or lower before_s",
                         "early_signal.before_s is %.15g, which is not less than time_limit_s, %.15g",
                         (double)spec->early_signal.before_ms / 1000, (double)spec->time_limit_ms / 1000);
    }
    if (spec->nodes > 1 && spec->gpus == 0) {
        return err_field(err, ERR_FIELD, "nodes", "make an array of it, or ask for GPUs",
                         "a job without GPUs is one rank, and cannot have %lld nodes",
                         (long long)spec->nodes);
    }
    if (spec->nodes > 0 && spec->gpus % spec->nodes != 0) {
        return err_field(err, ERR_FIELD, "nodes", "give gpus, the total, as a multiple of nodes",
                         "%lld nodes cannot have equal shares of %lld GPUs", (long long)spec->nodes,
                         (long long)spec->gpus);
    }
    if (!spec->remote && spec->nodes > 1) {
        return err_field(err, ERR_FIELD, "nodes", "use remote=true for several nodes",
                         "nodes must be 1 with remote=false, not %lld", (long long)spec->nodes);
    }
    if (!spec->remote && spec->host_id == NULL) {
        return err_field(err, ERR_FIELD, "host_id",
                         "send the SHA-256 of your machine id as host_id, or use remote=true",
                         "remote=false needs the submitter's host_id");
    }
    return true;
}

static bool decode_members(struct job_spec *spec, struct err *err)
{
    for (void *at = json_object_iter(spec->json); at != NULL; at = json_object_iter_next(spec->json, at)) {
        const char *name = json_object_iter_key(at);
        const struct field *field = find_field(name, json_object_iter_key_len(at));
        if (field == NULL) {
            return refuse_unknown(name, err);
        }
        json_t *value = json_object_iter_value(at);
        if (!json_is_null(value) && !field->decode(field, value, spec, err)) {
            return false;
        }
    }
    return true;
}

static bool make_terms(struct job_spec *spec, struct err *err)
{
    autojson json_t *labels = json_object();
    jobspec_volume_labels(spec->volumes, spec->volume_count, spec->image != NULL, labels);
    jobspec_add_input_labels(spec->inputs, spec->input_count, labels);
    if (spec->image != NULL) {
        json_object_set_new(labels, IMAGES_LABEL, json_string(IMAGES_VALUE));
    }
    return jobspec_make_terms(spec->constraints, labels, spec->avoid, spec->exclude, &spec->terms, err);
}

bool job_spec_decode(json_t *json, int64_t lease_min_ms, struct job_spec *ret_spec, struct err *err)
{
    struct job_spec spec = {
        .json = json,
        .gpus = -1,
        .remote = true,
        .grace_ms = DEFAULT_GRACE_MS,
        .lease_ms = DEFAULT_LEASE_MS,
        .infra_retries = DEFAULT_INFRA_RETRIES,
    };
    if (!member_holder(json, err) || !decode_members(&spec, err) || !check_whole(&spec, lease_min_ms, err) ||
        !jobspec_check_tasks(&spec, err) || !jobspec_check_secrets(&spec, err) ||
        !jobspec_check_checkpoint_volume(&spec, err) || !jobspec_check_inputs(&spec, err) ||
        !jobspec_check_image_use(&spec, err) || !make_terms(&spec, err)) {
        job_spec_finish(&spec);
        return false;
    }
    *ret_spec = spec;
    return true;
}

void job_spec_finish(struct job_spec *spec)
{
    free(spec->secrets);
    jobspec_volumes_free(spec->volumes, spec->volume_count);
    jobspec_inputs_free(spec->inputs, spec->input_count);
    free(spec->files);
    free(spec->dependencies);
    free(spec->terms);
    free(spec->only);
    json_decref(spec->json);
    *spec = (struct job_spec){0};
}

/* --- encode --- */

static void put_copy(json_t *json, const char *name, const json_t *value)
{
    if (value != NULL) {
        member_put(json, name, json_deep_copy(value));
    }
}

static void put_unless(json_t *json, const char *name, int64_t value, int64_t usual)
{
    if (value != usual) {
        member_put_int(json, name, value);
    }
}

static void put_seconds_unless(json_t *json, const char *name, int64_t ms, int64_t usual_ms)
{
    if (ms != usual_ms) {
        member_put(json, name, ms % 1000 == 0 ? json_integer(ms / 1000) : json_real((double)ms / 1000));
    }
}

json_t *job_spec_encode(const struct job_spec *spec)
{
    json_t *json = json_object();
    member_put_text(json, "name", spec->name);
    member_put_int(json, "gpus", spec->gpus);
    if (spec->millicpus > 0) {
        member_put(json, "cpus", cpus_encode(spec->millicpus));
    }
    put_unless(json, "memory", spec->memory_bytes, 0);
    member_put_text(json, "gpu_type", spec->gpu_type);
    if (!spec->remote) {
        member_put_bool(json, "remote", false);
    }
    if (spec->use_reserved_pool != USE_RESERVED_AUTO) {
        member_put_bool(json, "use_reserved_pool", spec->use_reserved_pool == USE_RESERVED_TRUE);
    }
    member_put_text(json, "pool", spec->pool);
    put_copy(json, "constraints", spec->constraints);
    put_copy(json, "avoid", spec->avoid);
    put_copy(json, "exclude", spec->exclude);
    if (spec->placement != PLACEMENT_PACK) {
        member_put_text(json, "placement", placement_text(spec->placement));
    }
    if (spec->nodes > 0) {
        member_put_int(json, "nodes", spec->nodes);
    }
    if (spec->launch_mode != LAUNCH_PROCESS) {
        member_put_text(json, "launch_mode", launch_mode_text(spec->launch_mode));
    }
    put_copy(json, "command", spec->command);
    if (job_spec_is_function(spec)) {
        json_t *function = json_object();
        member_put_text(function, "inline", spec->function.base64);
        member_put_text(function, "blob", spec->function.blob);
        member_put_text(function, "modules", spec->function.modules);
        member_put(json, "function", function);
    }
    put_copy(json, "env", spec->env);
    if (spec->secret_count > 0) {
        member_put(json, "secrets", jobspec_encode_secrets(spec->secrets, spec->secret_count));
    }
    if (spec->volume_count > 0) {
        member_put(json, "volumes", jobspec_encode_volumes(spec->volumes, spec->volume_count));
    }
    member_put_text(json, "checkpoint_volume", spec->checkpoint_volume);
    if (spec->input_count > 0) {
        member_put(json, "inputs", jobspec_encode_inputs(spec->inputs, spec->input_count));
    }
    put_copy(json, "labels", spec->labels);
    if (spec->file_count > 0) {
        member_put(json, "files", jobspec_encode_files(spec->files, spec->file_count));
    }
    if (job_spec_has_environment(spec)) {
        json_t *environment = json_object();
        put_copy(environment, "requirements", spec->environment.requirements);
        member_put_text(environment, "blob", spec->environment.blob);
        member_put_text(environment, "python", spec->environment.python);
        member_put(json, "environment", environment);
    }
    if (spec->bundle.blob != NULL) {
        json_t *bundle = json_object();
        member_put_text(bundle, "blob", spec->bundle.blob);
        put_copy(bundle, "python_path", spec->bundle.python_path);
        member_put(json, "bundle", bundle);
    }
    if (spec->tasks > 0 && (spec->sweep == NULL || spec->parallel != 0 || spec->only != NULL)) {
        member_put(json, "array", jobspec_encode_array(spec));
    }
    put_copy(json, "sweep", spec->sweep);
    member_put_text(json, "image", spec->image);
    member_put_text(json, "worker_image", spec->worker_image);
    member_put_text(json, "image_secret", spec->image_secret);
    member_put_text(json, "workdir", spec->workdir);
    member_put_text(json, "python", spec->python);
    member_put_text(json, "project", spec->project);
    put_unless(json, "priority", spec->priority, 0);
    put_seconds_unless(json, "time_limit_s", spec->time_limit_ms, 0);
    put_seconds_unless(json, "grace_s", spec->grace_ms, DEFAULT_GRACE_MS);
    put_seconds_unless(json, "keep_on_failure_s", spec->keep_ms, 0);
    if (spec->early_signal.signal != EARLY_NONE) {
        json_t *early = json_object();
        member_put_text(early, "signal", early_signal_text(spec->early_signal.signal));
        put_seconds_unless(early, "before_s", spec->early_signal.before_ms, DEFAULT_EARLY_MS);
        member_put(json, "early_signal", early);
    }
    put_seconds_unless(json, "lease_s", spec->lease_ms, DEFAULT_LEASE_MS);
    put_unless(json, "retries", spec->retries, 0);
    put_unless(json, "infra_retries", spec->infra_retries, DEFAULT_INFRA_RETRIES);
    if (spec->on_disconnect != ON_DISCONNECT_KEEP) {
        member_put_text(json, "on_disconnect", on_disconnect_text(spec->on_disconnect));
    }
    if (spec->dependency_count > 0) {
        member_put(json, "after", jobspec_encode_dependencies(spec->dependencies, spec->dependency_count));
    }
    if (spec->not_before_ms != 0) {
        char moment[32];
        clock_format_wall(spec->not_before_ms, moment, sizeof moment);
        member_put_text(json, "not_before", moment);
    }
    if (spec->hold) {
        member_put_bool(json, "hold", true);
    }
    member_put_text(json, "checkpoint_of", spec->checkpoint_of);
    member_put_text(json, "retry_of", spec->retry_of);
    put_copy(json, "notify", spec->notify);
    member_put_text(json, "host_id", spec->host_id);
    member_put_text(json, "traceparent", spec->traceparent);
    member_put_text(json, "tracestate", spec->tracestate);
    return json;
}
