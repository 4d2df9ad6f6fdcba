/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the inputs that a job names: data that a node fetches once, keeps, and shows to ranks for reading.
 * A URL has no user and no password, because a spec is shown to people: both belong into a secret. The agent
 * fetches inputs (agent/input), and decides where it may fetch them from. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/spec/node_label.h"

#define REMEDY   "write [NAME=]URL[:PATH], and https://, s3://BUCKET/KEY or volume:NAME/PATH as the URL"
#define OPTIONS  "write #sha256=HEX, #secret=NAME, or both with & between them"
#define VARIABLE "GPUCTL_INPUT_"

static bool refuse(size_t index, const char *hint, struct err *err, const char *what, const char *value)
{
    autofree char *field = xprintf("inputs[%zu]", index);
    return err_field(err, ERR_FIELD, field, hint, "%s %s%.*s", field, what, LIMIT_NAME_BYTES, value);
}

/* --- the parts of a text -------------------------------------------------------------------------------- */

/* NAME= stands before the scheme's colon; keys of objects may have '=', too. */
static char *cut_name(char *text, const char **ret_name)
{
    size_t length = strcspn(text, "=:/");
    *ret_name = NULL;
    if (text[length] != '=') {
        return text;
    }
    text[length] = '\0';
    *ret_name = text;
    return text + length + 1;
}

/* The path follows the last ":/" that does not belong to "://". */
static const char *cut_path(char *text)
{
    for (size_t i = strlen(text); i > 0; i--) {
        if (text[i - 1] == ':' && text[i] == '/' && text[i + 1] != '/') {
            text[i - 1] = '\0';
            return text + i;
        }
    }
    return NULL;
}

static bool take_option(char *option, struct job_input *input)
{
    char *value = option + strcspn(option, "=");
    if (*value != '\0') {
        *value++ = '\0';
    }
    if (strcmp(option, "sha256") == 0 && input->sha256 == NULL && jobspec_is_hash(value)) {
        input->sha256 = value;
    } else if (strcmp(option, "secret") == 0 && input->secret == NULL && jobspec_is_secret_name(value)) {
        input->secret = value;
    } else {
        return false;
    }
    return true;
}

static bool cut_options(char *text, struct job_input *input)
{
    char *rest = strchr(text, '#');
    if (rest == NULL) {
        return true;
    }
    *rest++ = '\0';
    for (char *option; (option = strsep(&rest, "&")) != NULL;) {
        if (!take_option(option, input)) {
            return false;
        }
    }
    return true;
}

bool jobspec_find_source(const char *url, enum input_source *ret_source, const char **ret_place)
{
    static const struct {
        const char *prefix;
        enum input_source source;
    } sources[] = {{"https://", SOURCE_HTTP},
                   {"http://", SOURCE_HTTP},
                   {"s3://", SOURCE_S3},
                   {"volume:", SOURCE_VOLUME}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        size_t length = strlen(sources[i].prefix);
        if (strncmp(url, sources[i].prefix, length) == 0) {
            *ret_source = sources[i].source;
            *ret_place = url + length;
            return true;
        }
    }
    return false;
}

/* Control characters and blanks have no place in a URL. */
static bool is_printable(const char *text)
{
    const char *c = text;
    while (*c > ' ' && *c != 0x7f) {
        c++;
    }
    return *c == '\0';
}

/* --- checks of one input -------------------------------------------------------------------------------- */

static bool check_http(const struct job_input *input, size_t index, struct err *err)
{
    size_t host = strcspn(input->place, "/?");
    if (host == 0 || !is_printable(input->place)) {
        return refuse(index, "escape blanks and other characters as %20", err, "is no URL: ", input->url);
    }
    return memchr(input->place, '@', host) == NULL ||
           refuse(index, "put a token into a secret, and name it: #secret=NAME", err,
                  "has a user or a password in its URL", "");
}

static bool check_s3(const struct job_input *input, size_t index, struct err *err)
{
    size_t bucket = strcspn(input->place, "/");
    autofree char *name = xstrndup(input->place, bucket);
    autofree char *key = xstrdup(input->place[bucket] == '/' ? input->place + bucket + 1 : "");
    if (!text_is_name(name, LIMIT_NAME_BYTES) || strchr(input->place, '?') != NULL) {
        return refuse(index, "write s3://BUCKET/KEY, or s3://BUCKET/PREFIX/", err,
                      "names no bucket: ", input->url);
    }
    size_t length = strlen(key);
    if (input->sha256 != NULL && (length == 0 || key[length - 1] == '/')) {
        return refuse(index, "name the secret alone: entity tags say whether its files have changed", err,
                      "is a folder, which has no SHA-256", "");
    }
    if (length > 0 && key[length - 1] == '/') {
        key[length - 1] = '\0';
        length--;
    }
    return length == 0 || jobspec_is_inner_path(key) ||
           refuse(index, "keys whose parts are names can be files", err, "names no file: ", input->url);
}

static bool check_volume(const struct job_input *input, size_t index, struct err *err)
{
    size_t length = strcspn(input->place, "/");
    autofree char *name = xstrndup(input->place, length);
    const char *rest = input->place + length + (input->place[length] == '/');
    if (!jobspec_is_volume_name(name)) {
        return refuse(index, "write volume:NAME/PATH", err, "names no volume: ", input->url);
    }
    if (input->secret != NULL || input->sha256 != NULL) {
        return refuse(index, "leave #... out: its size and time say whether it has changed", err,
                      "is of a volume, which takes no options", "");
    }
    return *rest == '\0' || jobspec_is_inner_path(rest) ||
           refuse(index, "write volume:NAME/PATH without . and ..", err,
                  "names nothing in a volume: ", input->url);
}

static bool check_url(const struct job_input *input, size_t index, struct err *err)
{
    switch (input->source) {
    case SOURCE_HTTP:
        return check_http(input, index, err);
    case SOURCE_S3:
        return check_s3(input, index, err);
    case SOURCE_VOLUME:
        return check_volume(input, index, err);
    }
    abort();
}

/* The last part of the URL's path. */
static char *usual_name(const struct job_input *input)
{
    size_t length = strcspn(input->place, "?");
    while (length > 0 && input->place[length - 1] == '/') {
        length--;
    }
    size_t begin = length;
    while (begin > 0 && input->place[begin - 1] != '/') {
        begin--;
    }
    return xstrndup(input->place + begin, length - begin);
}

static bool take_name(const char *given, size_t index, struct job_input *input, struct err *err)
{
    autofree char *name = given != NULL ? xstrdup(given) : usual_name(input);
    if (!text_is_name(name, LIMIT_NAME_BYTES)) {
        return refuse(index, "give it a name: NAME=URL, of letters, digits, '.', '_' and '-'", err,
                      "has no name that a variable can have: ", name);
    }
    input->variable = jobspec_variable(VARIABLE, name);
    return true;
}

static bool decode_input(const char *text, size_t index, struct job_input *input, struct err *err)
{
    const char *name;
    input->written = xstrdup(text);
    input->text = xstrdup(text);
    char *url = cut_name(input->text, &name);
    input->url = url;
    input->path = cut_path(url);
    if (!cut_options(url, input)) {
        return refuse(index, OPTIONS, err, "has options behind # that are none", "");
    }
    if (!jobspec_find_source(input->url, &input->source, &input->place)) {
        return refuse(index, REMEDY, err, "has no URL that nodes can fetch: ", input->url);
    }
    return check_url(input, index, err) && take_name(name, index, input, err) &&
           (input->path == NULL || jobspec_check_mount_path("inputs", index, input->path, err));
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static bool check_others(const struct job_input *inputs, size_t index, struct err *err)
{
    const struct job_input *input = &inputs[index];
    for (size_t i = 0; i < index; i++) {
        if (strcmp(inputs[i].variable, input->variable) == 0) {
            return refuse(index, "give one of them another name: NAME=URL", err,
                          "has the variable of another input: ", input->variable);
        }
        if (input->path != NULL && inputs[i].path != NULL &&
            jobspec_paths_collide(input->path, inputs[i].path)) {
            return refuse(index, "mount it elsewhere", err, "is where another input is: ", input->path);
        }
    }
    return true;
}

bool jobspec_decode_inputs(const json_t *json, struct job_input **ret_inputs, size_t *ret_count,
                           struct err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > LIMIT_JOB_INPUTS) {
        return err_field(err, ERR_FIELD, "inputs", "write [\"train=https://example.org/train.csv\"]",
                         "inputs must be an array of at most %d texts", LIMIT_JOB_INPUTS);
    }
    struct job_input *inputs = *ret_inputs = xzalloc((count + 1) * sizeof *inputs);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(json, i);
        *ret_count = i + 1;
        if (!json_is_string(value) || json_string_length(value) > LIMIT_INPUT_BYTES) {
            autofree char *field = xprintf("inputs[%zu]", i);
            return err_field(err, ERR_FIELD, field, REMEDY, "%s must be a text of at most %d bytes", field,
                             LIMIT_INPUT_BYTES);
        }
        if (!decode_input(json_string_value(value), i, &inputs[i], err) || !check_others(inputs, i, err)) {
            return false;
        }
    }
    return true;
}

/* A volume and an input would hide each other. */
bool jobspec_check_inputs(const struct job_spec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->input_count; i++) {
        const char *path = spec->inputs[i].path;
        for (size_t j = 0; j < spec->volume_count && path != NULL; j++) {
            if (spec->volumes[j].path != NULL && jobspec_paths_collide(path, spec->volumes[j].path)) {
                return refuse(i, "mount it elsewhere", err, "is where a volume is: ", path);
            }
        }
    }
    return true;
}

void jobspec_inputs_free(struct job_input *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(inputs[i].written);
        free(inputs[i].text);
        free(inputs[i].variable);
    }
    free(inputs);
}

json_t *jobspec_encode_inputs(const struct job_input *inputs, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_string(inputs[i].written));
    }
    return array;
}

void jobspec_add_input_labels(const struct job_input *inputs, size_t count, json_t *labels)
{
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].source != SOURCE_VOLUME) {
            continue;
        }
        autofree char *key =
            xprintf(VOLUME_LABEL "%.*s", (int)strcspn(inputs[i].place, "/"), inputs[i].place);
        if (json_object_get(labels, key) == NULL) {
            json_object_set_new(labels, key,
                                json_pack("[ssss]", VOLUME_LABEL_WRITABLE, VOLUME_LABEL_READ_ONLY,
                                          VOLUME_LABEL_WRITABLE_FIXED, VOLUME_LABEL_READ_ONLY_FIXED));
        }
    }
}
