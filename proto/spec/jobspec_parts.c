/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the composite fields of a job spec: command, variables, labels and files. A file path stays inside
 * its folder, no variable of the environment contract is overridden, and base64 decodes. The controller
 * checks whether a blob exists. */
#include "proto/spec/jobspec_parts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/members.h"

#define LIMIT_TEXT(limit)  LIMIT_QUOTE(limit)
#define LIMIT_QUOTE(limit) #limit

/* --- nearest names --- */

struct nearest nearest_to(const char *word)
{
    return (struct nearest){.word = word, .distance = (unsigned)(strnlen(word, LIMIT_NAME_BYTES) / 3) + 2};
}

void nearest_try(struct nearest *nearest, const char *name)
{
    unsigned distance = text_distance(nearest->word, name);
    if (distance < nearest->distance) {
        nearest->name = name;
        nearest->distance = distance;
    }
}

bool nearest_refuse(const struct nearest *nearest, const char *path, struct err *err)
{
    err_field(err, ERR_UNKNOWN_FIELD, path, "GET /v1/openapi.yaml lists the fields",
              "%.64s is not a known field", path);
    return nearest->name == NULL ? false : err_hint(err, "did you mean %s?", nearest->name);
}

/* --- command --- */

static bool refuse_shape(const json_t *command, struct err *err)
{
    const char *hint = "give an array of strings, [\"python\", \"train.py\"] for instance";
    if (json_is_string(command)) {
        hint = "split it into words, [\"python\", \"train.py\"], or give [\"sh\", \"-c\", \"...\"] for a "
               "shell line";
    }
    return err_field(err, ERR_FIELD, "command", hint, "command must be an array of words");
}

static bool refuse_word(size_t index, const char *what, struct err *err)
{
    autofree char *field = xprintf("command[%zu]", index);
    return err_field(err, ERR_FIELD, field, NULL, "%s %s", field, what);
}

bool jobspec_check_command(const json_t *command, struct err *err)
{
    size_t count = json_array_size(command);
    if (!json_is_array(command)) {
        return refuse_shape(command, err);
    }
    if (count == 0 || count > LIMIT_COMMAND_WORDS) {
        return err_field(err, ERR_FIELD, "command", NULL, "command must have 1 to %d words, it has %zu",
                         LIMIT_COMMAND_WORDS, count);
    }
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_array_get(command, i);
        if (!json_is_string(word)) {
            return refuse_word(i, "must be a string", err);
        }
        bytes += json_string_length(word) + 1;
    }
    if (json_string_length(json_array_get(command, 0)) == 0) {
        return refuse_word(0, "must not be empty, it names the program", err);
    }
    if (bytes > LIMIT_COMMAND_BYTES) {
        return err_field(err, ERR_FIELD, "command", "put long arguments into a file of the job",
                         "command is %zu bytes, the limit is %lld", bytes, LIMIT_COMMAND_BYTES);
    }
    return true;
}

/* --- environment --- */

/* The variables of the environment contract, which only gpuctl sets. */
static const char *const our_variables[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "NNODES",
    "NUM_NODES",
    "NPROC_PER_NODE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "CUDA_VISIBLE_DEVICES",
    "CLUSTER_SPEC",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_ERROR_FILE",
};

bool jobspec_is_our_variable(const char *name)
{
    for (size_t i = 0; i < sizeof our_variables / sizeof our_variables[0]; i++) {
        if (strcmp(our_variables[i], name) == 0) {
            return true;
        }
    }
    return strncmp(name, "GPUCTL_", strlen("GPUCTL_")) == 0;
}

bool jobspec_is_variable_name(const char *name)
{
    static const char *const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    bool digit_first = name[0] >= '0' && name[0] <= '9';
    return name[0] != '\0' && !digit_first && name[strspn(name, allowed)] == '\0';
}

/* Refuses one member of an object field: "env.RANK is set by gpuctl itself". */
static bool refuse_member(const char *object, const char *name, const char *hint, const char *what,
                          struct err *err)
{
    autofree char *field = xprintf("%s.%.*s", object, LIMIT_NAME_BYTES, name);
    return err_field(err, ERR_FIELD, field, hint, "%s %s", field, what);
}

static bool check_variable(const char *name, const json_t *value, struct err *err)
{
    if (!jobspec_is_variable_name(name)) {
        return refuse_member("env", name, "letters, digits and '_', no digit first",
                             "is not the name of an environment variable", err);
    }
    if (jobspec_is_our_variable(name)) {
        return refuse_member("env", name, "leave it out", "is set by gpuctl itself", err);
    }
    return json_is_string(value) || json_is_null(value) ||
           refuse_member("env", name, "write it as text, in quotes", "must be a string, or null", err);
}

bool jobspec_check_env(json_t *env, struct err *err)
{
    if (!json_is_object(env)) {
        return err_field(err, ERR_FIELD, "env", NULL, "env must be an object of strings and nulls");
    }
    if (json_object_size(env) > LIMIT_ENV_VARIABLES) {
        return err_field(err, ERR_FIELD, "env", NULL, "env has %zu variables, the limit is %d",
                         json_object_size(env), LIMIT_ENV_VARIABLES);
    }
    size_t bytes = 0;
    for (void *at = json_object_iter(env); at != NULL; at = json_object_iter_next(env, at)) {
        const json_t *value = json_object_iter_value(at);
        if (!check_variable(json_object_iter_key(at), value, err)) {
            return false;
        }
        bytes += json_object_iter_key_len(at) + json_string_length(value) + 2;
    }
    return bytes <= LIMIT_ENV_BYTES ||
           err_field(err, ERR_FIELD, "env", "put long values into a file of the job",
                     "env is %zu bytes, the limit is %lld", bytes, LIMIT_ENV_BYTES);
}

/* A variable holds a secret if its name has one of these words between underscores. */
static const char *const secret_words[] = {
    "APIKEY",   "AUTH", "AUTHORIZATION", "COOKIE",     "CREDENTIAL", "CREDENTIALS",
    "DSN",      "KEY",  "KEYS",          "PASSPHRASE", "PASS",       "PASSWD",
    "PASSWORD", "PAT",  "SECRET",        "SECRETS",    "TOKEN",      "TOKENS",
};

static bool is_secret_word(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof secret_words / sizeof secret_words[0]; i++) {
        if (strlen(secret_words[i]) == length && strncasecmp(secret_words[i], word, length) == 0) {
            return true;
        }
    }
    return false;
}

bool jobspec_is_secret(const char *name)
{
    for (const char *word = name; *word != '\0';) {
        size_t length = strcspn(word, "_");
        if (is_secret_word(word, length)) {
            return true;
        }
        word += length + (word[length] == '_');
    }
    return false;
}

/* --- labels --- */

static bool check_label(const char *name, const json_t *value, struct err *err)
{
    if (!text_is_name(name, LIMIT_NAME_BYTES)) {
        return refuse_member("labels", name, "letters, digits, '.', '_' and '-', a letter or digit first",
                             "has no name of 1 to " LIMIT_TEXT(LIMIT_NAME_BYTES) " characters", err);
    }
    if (!json_is_string(value) || json_string_length(value) > LIMIT_LABEL_VALUE_BYTES) {
        return refuse_member("labels", name, NULL,
                             "must be a string of at most " LIMIT_TEXT(LIMIT_LABEL_VALUE_BYTES) " bytes",
                             err);
    }
    return true;
}

bool jobspec_check_labels(json_t *labels, struct err *err)
{
    if (!json_is_object(labels)) {
        return err_field(err, ERR_FIELD, "labels", NULL, "labels must be an object of strings");
    }
    if (json_object_size(labels) > LIMIT_LABELS) {
        return err_field(err, ERR_FIELD, "labels", NULL, "labels has %zu members, the limit is %d",
                         json_object_size(labels), LIMIT_LABELS);
    }
    for (void *at = json_object_iter(labels); at != NULL; at = json_object_iter_next(labels, at)) {
        if (!check_label(json_object_iter_key(at), json_object_iter_value(at), err)) {
            return false;
        }
    }
    return true;
}

/* --- function --- */

bool jobspec_is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") == 64 && text[64] == '\0';
}

#define HEADER      "gpuctl-function 1 python="
#define HEADER_HINT "a line \"" HEADER "3.12\", then the pickle of (function, args, kwargs)"

/* Moves *at past the digits there; false: there are none. */
static bool pass_digits(const uint8_t *bytes, size_t length, size_t *at)
{
    size_t start = *at;
    while (*at < length && bytes[*at] >= '0' && bytes[*at] <= '9') {
        (*at)++;
    }
    return *at > start;
}

static bool pass_byte(const uint8_t *bytes, size_t length, size_t *at, char wanted)
{
    return *at < length && bytes[(*at)++] == (uint8_t)wanted;
}

static bool has_header(const uint8_t *bytes, size_t length)
{
    size_t at = strlen(HEADER);
    return length >= at && memcmp(bytes, HEADER, at) == 0 && pass_digits(bytes, length, &at) &&
           pass_byte(bytes, length, &at, '.') && pass_digits(bytes, length, &at) &&
           pass_byte(bytes, length, &at, '\n');
}

static bool check_payload(const char *base64, struct err *err)
{
    autofree uint8_t *bytes = NULL;
    size_t length = 0;
    if (!text_from_base64(base64, strlen(base64), &bytes, &length)) {
        return err_field(err, ERR_FIELD, "function.inline", "RFC 4648, with padding",
                         "function.inline does not decode");
    }
    if (length > LIMIT_INLINE_BYTES) {
        return err_field(err, ERR_TOO_LARGE, "function.inline",
                         "put it as a blob: PUT /v1/blobs/{sha256}, then name it by function.blob",
                         "function.inline is %zu bytes, the limit is %lld", length, LIMIT_INLINE_BYTES);
    }
    return has_header(bytes, length) ||
           err_field(err, ERR_FIELD, "function.inline", HEADER_HINT,
                     "function.inline does not begin with the line that says which Python made it");
}

static bool take_function_member(const char *name, const json_t *value, struct job_function *function,
                                 struct err *err)
{
    const struct {
        const char *name;
        const char **target;
    } members[] = {{"inline", &function->base64}, {"blob", &function->blob}, {"modules", &function->modules}};
    struct nearest nearest = nearest_to(name);
    autofree char *path = xprintf("function.%s", name);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].name, name) == 0) {
            *members[i].target = json_string_value(value);
            return json_is_string(value) || json_is_null(value) ||
                   err_field(err, ERR_FIELD, path, NULL, "%s must be a string", path);
        }
        nearest_try(&nearest, members[i].name);
    }
    return nearest_refuse(&nearest, path, err);
}

static bool check_function_hash(const char *hash, const char *path, struct err *err)
{
    return hash == NULL || jobspec_is_hash(hash) ||
           err_field(err, ERR_FIELD, path, "PUT /v1/blobs/{sha256} first, then name it here",
                     "%s must be a SHA-256 of 64 lower-case hex digits", path);
}

bool jobspec_decode_function(const json_t *json, struct job_function *ret_function, struct err *err)
{
    struct job_function function = {0};
    const char *name;
    json_t *value;
    if (!json_is_object(json)) {
        return err_field(err, ERR_FIELD, "function", "give {\"inline\": ...} or {\"blob\": ...}",
                         "function must be an object");
    }
    json_object_foreach ((json_t *)(uintptr_t)json, name, value) {
        if (!take_function_member(name, value, &function, err)) {
            return false;
        }
    }
    if ((function.base64 != NULL) + (function.blob != NULL) != 1) {
        return err_field(err, ERR_FIELD, "function", NULL, "function must have one of inline and blob");
    }
    *ret_function = function;
    return (function.base64 == NULL || check_payload(function.base64, err)) &&
           check_function_hash(function.blob, "function.blob", err) &&
           check_function_hash(function.modules, "function.modules", err);
}

/* --- files --- */

bool jobspec_is_inner_path(const char *path)
{
    const char *part = path;
    for (;;) {
        size_t length = strcspn(part, "/");
        bool dots = part[0] == '.' && (length == 1 || (length == 2 && part[1] == '.'));
        if (length == 0 || length > LIMIT_PATH_PART_BYTES || dots) {
            return false;
        }
        if (part[length] == '\0') {
            return true;
        }
        part += length + 1;
    }
}

bool jobspec_paths_collide(const char *a, const char *b)
{
    size_t same = 0;
    while (a[same] != '\0' && a[same] == b[same]) {
        same++;
    }
    return (a[same] == '\0' && (b[same] == '\0' || b[same] == '/')) || (b[same] == '\0' && a[same] == '/');
}

static bool check_path(const struct job_file *files, size_t index, struct err *err)
{
    const char *path = files[index].path;
    if (path == NULL) {
        return err_field(err, ERR_FIELD, "path", NULL, "path is missing");
    }
    if (strlen(path) > LIMIT_PATH_BYTES || !jobspec_is_inner_path(path)) {
        return err_field(err, ERR_FIELD, "path", "relative, no empty part, no \".\" and no \"..\"",
                         "path must lie inside the job's folder and have at most %d bytes", LIMIT_PATH_BYTES);
    }
    for (size_t i = 0; i < index; i++) {
        if (jobspec_paths_collide(files[i].path, path)) {
            return err_field(err, ERR_FIELD, "path", "give each file a path of its own",
                             "path collides with files[%zu].path", i);
        }
    }
    return true;
}

/* Adds the size of inline content to *total; blobs do not count. */
static bool check_content(const struct job_file *file, size_t *total, struct err *err)
{
    if ((file->text != NULL) + (file->base64 != NULL) + (file->blob != NULL) != 1) {
        return err_set(err, ERR_FIELD, "must have one of text, base64 and blob");
    }
    if (file->blob != NULL) {
        return jobspec_is_hash(file->blob) ||
               err_field(err, ERR_FIELD, "blob", "PUT /v1/blobs/{sha256} first, then name it here",
                         "blob must be a SHA-256 of 64 lower-case hex digits");
    }
    size_t length = 0;
    if (file->text != NULL) {
        length = strlen(file->text);
    } else {
        autofree uint8_t *bytes = NULL;
        if (!text_from_base64(file->base64, strlen(file->base64), &bytes, &length)) {
            return err_field(err, ERR_FIELD, "base64", "RFC 4648, with padding", "base64 does not decode");
        }
    }
    *total += length;
    return *total <= LIMIT_INLINE_BYTES ||
           err_field(err, ERR_TOO_LARGE, NULL,
                     "put it as a blob: PUT /v1/blobs/{sha256}, then name it by blob",
                     "brings the inline files to %zu bytes, the limit is %lld", *total, LIMIT_INLINE_BYTES);
}

static const char *const file_members[] = {"path", "text", "base64", "blob", "executable"};

static bool check_file_members(json_t *json, struct err *err)
{
    size_t count = sizeof file_members / sizeof file_members[0];
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        const char *name = json_object_iter_key(at);
        struct nearest nearest = nearest_to(name);
        size_t i = 0;
        while (i < count && strcmp(file_members[i], name) != 0) {
            nearest_try(&nearest, file_members[i++]);
        }
        if (i == count) {
            return nearest_refuse(&nearest, name, err);
        }
    }
    return true;
}

static bool decode_file(json_t *json, struct job_file *file, struct err *err)
{
    if (!json_is_object(json)) {
        return err_set(err, ERR_FIELD, "must be an object of path and content");
    }
    return check_file_members(json, err) && json_read_text(json, "path", &file->path, err) &&
           json_read_text(json, "text", &file->text, err) &&
           json_read_text(json, "base64", &file->base64, err) &&
           json_read_text(json, "blob", &file->blob, err) &&
           json_read_bool(json, "executable", &file->executable, err);
}

bool jobspec_decode_files(const json_t *json, struct job_file **ret_files, size_t *ret_count, struct err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > LIMIT_FILES) {
        return err_field(err, ERR_FIELD, "files", "pack many files into an archive and put it as a blob",
                         "files must be an array of at most %d files", LIMIT_FILES);
    }
    struct job_file *files = xzalloc(count * sizeof *files);
    *ret_files = files;
    *ret_count = count;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (!decode_file(json_array_get(json, i), &files[i], err) || !check_path(files, i, err) ||
            !check_content(&files[i], &total, err)) {
            return member_err_inside(err, "files", i);
        }
    }
    return true;
}

json_t *jobspec_encode_files(const struct job_file *files, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *json = json_object();
        member_put_text(json, "path", files[i].path);
        member_put_text(json, "text", files[i].text);
        member_put_text(json, "base64", files[i].base64);
        member_put_text(json, "blob", files[i].blob);
        if (files[i].executable) {
            member_put_bool(json, "executable", true);
        }
        json_array_append_new(array, json);
    }
    return array;
}
