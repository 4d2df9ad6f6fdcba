/* SPDX-License-Identifier: Apache-2.0 */
/* The field `environment` of a spec. Its lines are the same text, and so the same environment, whether they
 * are sent in the spec or as a blob. requirements.c reads the lines. */
#include "client/cli/spec/environment.h"

#include <string.h>
#include <sys/stat.h>

#include "client/cli/transport/blob.h"
#include "client/cli/spec/requirements.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

static bool set_lines(json_t *environment, json_t *lines)
{
    if (lines == NULL) {
        return false;
    }
    json_object_del(environment, "file");
    json_object_del(environment, "blob");
    json_object_set_new(environment, "requirements", lines);
    return true;
}

bool environment_read(const char *folder, json_t *spec, struct err *err)
{
    json_t *environment = json_object_get(spec, "environment");
    const json_t *file = json_object_get(environment, "file");
    const json_t *lines = json_object_get(environment, "requirements");
    if (json_is_array(lines) && file == NULL) {
        return set_lines(environment, requirements_take(folder, lines, "environment.requirements", err));
    }
    if (file == NULL) {
        return true;
    }
    const char *name = json_string_value(file);
    if (name == NULL || name[0] == '\0') {
        return err_field(err, ERR_USAGE, "environment.file", NULL,
                         "environment.file must name a requirements file");
    }
    if (lines != NULL || json_object_get(environment, "blob") != NULL) {
        return err_field(err, ERR_USAGE, "environment.file", "leave one of them out",
                         "environment.file says the same as another field beside it");
    }
    autofree char *path = name[0] == '/' ? xstrdup(name) : xprintf("%s/%s", folder, name);
    return set_lines(environment, requirements_read(path, "environment.file", err));
}

/* --- options --- */

/* Whether a file must not be read yet: a pipe can be read only once, when the job is sent. */
static bool is_for_later(const struct api *api, const char *path)
{
    struct stat status;
    return api == NULL && stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static json_t *read_option(const struct api *api, const char *path, struct err *err)
{
    return is_for_later(api, path) ? json_array() : requirements_read(path, "requirements", err);
}

static bool add_options(const struct api *api, const struct spec_options *options, json_t *spec,
                        struct err *err)
{
    if (options->requirements != NULL &&
        !set_lines(json_object_in(spec, "environment"), read_option(api, options->requirements, err))) {
        return false;
    }
    if (options->python_version != NULL) {
        json_t *environment = json_object_in(spec, "environment");
        json_object_set_new(environment, "python", json_string(options->python_version));
        if (json_object_get(environment, "requirements") == NULL &&
            json_object_get(environment, "blob") == NULL) {
            json_object_set_new(environment, "requirements", json_array());
        }
    }
    return true;
}

/* --- lines that are sent as a blob --- */

static void join(const json_t *lines, struct text *out)
{
    for (size_t i = 0; i < json_array_size(lines); i++) {
        text_append(out, json_string_value(json_array_get(lines, i)));
        text_append(out, "\n");
    }
}

static bool put_lines(struct api *api, json_t *environment, struct err *err)
{
    autotext struct text text = {0};
    char hex[HASH_HEX + 1];
    join(json_object_get(environment, "requirements"), &text);
    size_t most = api != NULL ? CLIENT_REQUIREMENTS_INLINE_BYTES : LIMIT_REQUIREMENTS_BYTES;
    if (text.length <= most) {
        return true;
    }
    if (!blob_put_bytes(api, text.bytes, text.length, hex, err)) {
        return false;
    }
    json_object_del(environment, "requirements");
    json_object_set_new(environment, "blob", json_string(hex));
    return true;
}

static bool are_lines(const json_t *lines)
{
    bool good = json_is_array(lines);
    for (size_t i = 0; good && i < json_array_size(lines); i++) {
        good = json_is_string(json_array_get(lines, i));
    }
    return good;
}

bool environment_fill(struct api *api, const struct spec_options *options, json_t *spec, struct err *err)
{
    struct job_environment decoded;
    if (!add_options(api, options, spec, err)) {
        return false;
    }
    json_t *environment = json_object_get(spec, "environment");
    if (are_lines(json_object_get(environment, "requirements")) && !put_lines(api, environment, err)) {
        return false;
    }
    return environment == NULL || json_is_null(environment) ||
           jobspec_decode_environment(environment, &decoded, err);
}
