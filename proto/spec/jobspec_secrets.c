/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the secrets that a job asks for: which secret each entry names, and the variable that ranks find it
 * in. The variables differ, and nothing else of the spec sets them. A spec holds names of secrets, never
 * their values. The controller decides whether the submitter may use a secret. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/limits.h"

#define REMEDY         "write NAME, NAME=VARIABLE, NAME:file or NAME=VARIABLE:file"
#define OTHER_VARIABLE "name another one: NAME=VARIABLE"
#define AS_FILE        ":file"
#define OF_A_FILE      "_FILE"
#define NAME_CHARS     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

bool jobspec_is_secret_name(const char *name)
{
    return jobspec_is_variable_name(name) && strlen(name) <= LIMIT_NAME_BYTES;
}

static bool cut(const char *from, size_t length, char *out, size_t room)
{
    if (length == 0 || length >= room) {
        return false;
    }
    memcpy(out, from, length);
    out[length] = '\0';
    return jobspec_is_variable_name(out);
}

/* NAME[=VARIABLE][:file] */
static bool read_entry(const char *text, struct job_secret *secret)
{
    size_t name = strspn(text, NAME_CHARS);
    const char *rest = text + name;
    if (!cut(text, name, secret->name, sizeof secret->name)) {
        return false;
    }
    const char *variable = *rest == '=' ? rest + 1 : NULL;
    size_t length = variable != NULL ? strspn(variable, NAME_CHARS) : 0;
    rest = variable != NULL ? variable + length : rest;
    secret->file = strcmp(rest, AS_FILE) == 0;
    if (*rest != '\0' && !secret->file) {
        return false;
    }
    if (variable != NULL) {
        return length <= LIMIT_NAME_BYTES && cut(variable, length, secret->variable, sizeof secret->variable);
    }
    stpcpy(stpcpy(secret->variable, secret->name), secret->file ? OF_A_FILE : "");
    return true;
}

static bool refuse(size_t index, const char *hint, const char *what, const char *variable, struct err *err)
{
    autofree char *field = xprintf("secrets[%zu]", index);
    return err_field(err, ERR_FIELD, field, hint, "%s %s%.*s", field, what, LIMIT_NAME_BYTES, variable);
}

static bool is_taken(const struct job_secret *secrets, size_t count, const char *variable)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(secrets[i].variable, variable) == 0) {
            return true;
        }
    }
    return false;
}

bool jobspec_decode_secrets(const json_t *json, struct job_secret **ret_secrets, size_t *ret_count,
                            struct err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > LIMIT_JOB_SECRETS) {
        return err_field(err, ERR_FIELD, "secrets", "write [\"HF_TOKEN\"]; gpuctl secret list shows them",
                         "secrets must be an array of at most %d texts", LIMIT_JOB_SECRETS);
    }
    struct job_secret *secrets = *ret_secrets = xzalloc((count + 1) * sizeof *secrets);
    for (*ret_count = 0; *ret_count < count; ++*ret_count) {
        struct job_secret *secret = &secrets[*ret_count];
        const char *text = json_string_value(json_array_get(json, *ret_count));
        if (text == NULL || !read_entry(text, secret)) {
            return refuse(*ret_count, REMEDY, "names no secret: letters, digits and '_', no digit first", "",
                          err);
        }
        if (jobspec_is_our_variable(secret->variable)) {
            return refuse(*ret_count, OTHER_VARIABLE,
                          "wants a variable that gpuctl itself sets: ", secret->variable, err);
        }
        if (is_taken(secrets, *ret_count, secret->variable)) {
            return refuse(*ret_count, OTHER_VARIABLE,
                          "wants the variable of another secret: ", secret->variable, err);
        }
    }
    return true;
}

bool jobspec_check_secrets(const struct job_spec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->secret_count; i++) {
        const char *variable = spec->secrets[i].variable;
        if (json_object_get(spec->env, variable) != NULL) {
            return refuse(i, OTHER_VARIABLE, "wants a variable that env sets: ", variable, err);
        }
        if (json_object_get(spec->sweep, variable) != NULL) {
            return refuse(i, OTHER_VARIABLE, "wants a variable of the sweep: ", variable, err);
        }
    }
    return true;
}

static bool is_default(const struct job_secret *secret)
{
    size_t length = strlen(secret->name);
    return strncmp(secret->variable, secret->name, length) == 0 &&
           strcmp(secret->variable + length, secret->file ? OF_A_FILE : "") == 0;
}

json_t *jobspec_encode_secrets(const struct job_secret *secrets, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        bool usual = is_default(&secrets[i]);
        json_array_append_new(array,
                              json_sprintf("%s%s%s%s", secrets[i].name, usual ? "" : "=",
                                           usual ? "" : secrets[i].variable, secrets[i].file ? AS_FILE : ""));
    }
    return array;
}
