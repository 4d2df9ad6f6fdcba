/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the environment of Python packages, the bundle and the image of a job spec. A line of a
 * requirements file never contains a line break, a folder of a bundle lies inside the bundle, and the name of
 * an image is never an option of a program. pip decides whether a package exists, a registry whether an image
 * does, and the controller whether a blob does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"
#include "proto/members.h"

#define HASH_HINT "PUT /v1/blobs/{sha256} first, then name it here"

/* A member of such an object: its name and the function that decodes it. */
struct part {
    const char *name;
    bool (*take)(const char *path, json_t *value, void *target, struct err *err);
};

/* Decodes each member of an object by its part; null counts as absent. */
static bool take_parts(const char *object, const json_t *json, const struct part *parts, size_t count,
                       void *target, struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
        autofree char *path = xprintf("%s.%s", object, name);
        struct nearest nearest = nearest_to(name);
        size_t i = 0;
        while (i < count && strcmp(parts[i].name, name) != 0) {
            nearest_try(&nearest, parts[i++].name);
        }
        if (i == count) {
            return nearest_refuse(&nearest, path, err);
        }
        if (!json_is_null(value) && !parts[i].take(path, value, target, err)) {
            return false;
        }
    }
    return true;
}

static bool take_hash(const char *path, const json_t *value, const char **ret_hash, struct err *err)
{
    const char *hash = json_string_value(value);
    if (hash == NULL || !jobspec_is_hash(hash)) {
        return err_field(err, ERR_FIELD, path, HASH_HINT, "%s must be a SHA-256 of 64 lower-case hex digits",
                         path);
    }
    *ret_hash = hash;
    return true;
}

static bool refuse_item(const char *array, size_t index, const char *hint, const char *what, struct err *err)
{
    autofree char *path = xprintf("%s[%zu]", array, index);
    return err_field(err, ERR_FIELD, path, hint, "%s %s", path, what);
}

/* --- environment --- */

static bool take_requirements(const char *path, json_t *value, void *target, struct err *err)
{
    struct job_environment *environment = target;
    size_t bytes = 0;
    if (!json_is_array(value)) {
        return err_field(err, ERR_FIELD, path, "give an array of lines, [\"numpy==2.1.0\"] for instance",
                         "%s must be an array of strings", path);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *line = json_string_value(json_array_get(value, i));
        if (line == NULL || strpbrk(line, "\r\n") != NULL) {
            return refuse_item(path, i, "one line of a requirements file each",
                               "must be a string of one line", err);
        }
        bytes += strlen(line) + 1;
    }
    environment->requirements = value;
    return bytes <= LIMIT_REQUIREMENTS_BYTES ||
           err_field(err, ERR_TOO_LARGE, path,
                     "put it as a blob: PUT /v1/blobs/{sha256}, then name it by environment.blob",
                     "%s is %zu bytes, the limit is %lld", path, bytes, LIMIT_REQUIREMENTS_BYTES);
}

static bool take_requirements_blob(const char *path, json_t *value, void *target, struct err *err)
{
    return take_hash(path, value, &((struct job_environment *)target)->blob, err);
}

/* A version such as 3.12: two numbers of one or two digits. */
static bool is_version(const char *text)
{
    size_t major = strspn(text, "0123456789");
    size_t minor = text[major] == '.' ? strspn(text + major + 1, "0123456789") : 0;
    return major >= 1 && major <= 2 && minor >= 1 && minor <= 2 && text[major + 1 + minor] == '\0';
}

static bool take_python(const char *path, json_t *value, void *target, struct err *err)
{
    const char *version = json_string_value(value);
    ((struct job_environment *)target)->python = version;
    return (version != NULL && is_version(version)) ||
           err_field(err, ERR_FIELD, path, "\"3.12\" for instance",
                     "%s must be the major and minor version of Python", path);
}

bool jobspec_decode_environment(const json_t *json, struct job_environment *ret_environment, struct err *err)
{
    static const struct part parts[] = {
        {"requirements", take_requirements}, {"blob", take_requirements_blob}, {"python", take_python}};
    struct job_environment environment = {0};
    if (!json_is_object(json)) {
        return err_field(err, ERR_FIELD, "environment", "give {\"requirements\": [...]} or {\"blob\": ...}",
                         "environment must be an object");
    }
    if (!take_parts("environment", json, parts, sizeof parts / sizeof parts[0], &environment, err)) {
        return false;
    }
    *ret_environment = environment;
    return (environment.requirements != NULL) + (environment.blob != NULL) == 1 ||
           err_field(err, ERR_FIELD, "environment", NULL,
                     "environment must have one of requirements and blob");
}

/* --- bundle --- */

static bool take_bundle_blob(const char *path, json_t *value, void *target, struct err *err)
{
    return take_hash(path, value, &((struct job_bundle *)target)->blob, err);
}

static bool take_python_path(const char *path, json_t *value, void *target, struct err *err)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > LIMIT_PYTHON_PATHS) {
        return err_field(err, ERR_FIELD, path, NULL, "%s must be an array of at most %d folders", path,
                         LIMIT_PYTHON_PATHS);
    }
    for (size_t i = 0; i < count; i++) {
        const char *folder = json_string_value(json_array_get(value, i));
        bool good = folder != NULL && strlen(folder) <= LIMIT_PATH_BYTES && strchr(folder, ':') == NULL &&
                    (strcmp(folder, ".") == 0 || jobspec_is_inner_path(folder));
        if (!good) {
            return refuse_item(path, i, "\"src\" for instance; no \"..\", no empty part and no ':'",
                               "must be a folder inside the bundle", err);
        }
    }
    ((struct job_bundle *)target)->python_path = value;
    return true;
}

bool jobspec_decode_bundle(const json_t *json, struct job_bundle *ret_bundle, struct err *err)
{
    static const struct part parts[] = {{"blob", take_bundle_blob}, {"python_path", take_python_path}};
    struct job_bundle bundle = {0};
    if (!json_is_object(json)) {
        return err_field(err, ERR_FIELD, "bundle", "give {\"blob\": ...}", "bundle must be an object");
    }
    if (!take_parts("bundle", json, parts, sizeof parts / sizeof parts[0], &bundle, err)) {
        return false;
    }
    *ret_bundle = bundle;
    return bundle.blob != NULL ||
           err_field(err, ERR_FIELD, "bundle.blob", HASH_HINT, "bundle.blob is missing");
}

/* --- image --- */

#define IMAGE_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:"
#define DIGEST           "sha256:"
#define IMAGE_HINT       "registry.example.com/name:tag or name@sha256:<64 hex digits> for instance"

const char *job_image_digest(const char *image)
{
    const char *at = strchr(image, '@');
    return at != NULL ? at + 1 : NULL;
}

const char *job_spec_image_at(const struct job_spec *spec, int64_t first_rank)
{
    return first_rank > 0 && spec->worker_image != NULL ? spec->worker_image : spec->image;
}

bool jobspec_check_image(const char *field, const char *image, struct err *err)
{
    size_t plain = strspn(image, IMAGE_CHARACTERS);
    const char *digest = job_image_digest(image);
    if (strstr(image, "://") != NULL) {
        return err_field(err, ERR_FIELD, field, "leave out what stands before ://",
                         "%s must be the name of an image in a registry", field);
    }
    if (digest != NULL &&
        (strncmp(digest, DIGEST, strlen(DIGEST)) != 0 || !jobspec_is_hash(digest + strlen(DIGEST)))) {
        return err_field(err, ERR_FIELD, field, IMAGE_HINT,
                         "the digest of %s must be sha256: and 64 lower-case hex digits", field);
    }
    bool good = plain > 0 && strlen(image) <= LIMIT_IMAGE_BYTES && strchr("/:-.", image[0]) == NULL &&
                strchr("/:", image[plain - 1]) == NULL && strstr(image, "//") == NULL &&
                (image[plain] == '\0' || image + plain + 1 == digest);
    return good || err_field(err, ERR_FIELD, field, IMAGE_HINT, "%s must be the name of an image", field);
}

bool jobspec_check_image_use(const struct job_spec *spec, struct err *err)
{
    if (spec->image == NULL) {
        const char *field = spec->worker_image != NULL ? "worker_image" : "image_secret";
        return (spec->worker_image == NULL && spec->image_secret == NULL) ||
               err_field(err, ERR_FIELD, field, "name the image, too, or leave it out",
                         "%s is of no use without image", field);
    }
    return !job_spec_has_environment(spec) ||
           err_field(err, ERR_FIELD, "environment", "put the packages into the image, or leave the image out",
                     "a job in an image has the packages of the image, and no environment");
}

/* --- blobs ---------------------------------------------------------------------------------------------- */

bool job_spec_each_blob(const struct job_spec *spec,
                        bool (*visit)(void *closure, const char *hash, const char *field), void *closure)
{
    const struct {
        const char *hash, *field;
    } blobs[] = {{spec->function.blob, "function.blob"},
                 {spec->function.modules, "function.modules"},
                 {spec->environment.blob, "environment.blob"},
                 {spec->bundle.blob, "bundle.blob"}};
    for (size_t i = 0; i < spec->file_count; i++) {
        char field[48];
        snprintf(field, sizeof field, "files[%zu].blob", i);
        if (spec->files[i].blob != NULL && !visit(closure, spec->files[i].blob, field)) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof blobs / sizeof blobs[0]; i++) {
        if (blobs[i].hash != NULL && !visit(closure, blobs[i].hash, blobs[i].field)) {
            return false;
        }
    }
    return true;
}
