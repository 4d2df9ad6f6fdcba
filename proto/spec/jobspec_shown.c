/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the form of a spec that people see. A large inline function becomes its length. Secrets are never
 * shown: values of variables with secret names, and credentials in the addresses of requirements. A spec
 * without these is shown as received. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/members.h"

#define HIDDEN "***"

/* --- the function --- */

/* The decoded length of valid base64. */
static int64_t decoded_length(const char *base64)
{
    size_t length = strlen(base64);
    size_t padding = 0;
    while (padding < length && base64[length - 1 - padding] == '=') {
        padding++;
    }
    return (int64_t)(length / 4 * 3 - padding);
}

/* A copy of the function without its inline text; NULL: the spec has no inline function. */
static json_t *shown_function(const struct job_spec *spec)
{
    if (spec->function.base64 == NULL) {
        return NULL;
    }
    json_t *function = json_copy(json_object_get(spec->json, "function"));
    json_object_del(function, "inline");
    member_put_int(function, "inline_bytes", decoded_length(spec->function.base64));
    return function;
}

/* --- the environment's variables --- */

/* A copy of env without secrets; NULL: env has none. */
static json_t *shown_env(const struct job_spec *spec)
{
    json_t *env = NULL;
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)spec->env, name, value) {
        if (jobspec_is_secret(name) && json_is_string(value)) {
            env = env != NULL ? env : json_copy((json_t *)(uintptr_t)spec->env);
            member_put_text(env, name, HIDDEN);
        }
    }
    return env;
}

/* --- requirements --- */

/* The length of the credentials between "://" and "@"; 0: there are none, or only the user of git's public
 * addresses. */
static size_t credential_length(const char *authority)
{
    size_t length = strcspn(authority, "/?# \t\"'");
    while (length > 0 && authority[length] != '@') {
        length--;
    }
    return length == strlen("git") && strncmp(authority, "git", length) == 0 ? 0 : length;
}

/* Appends the line without the credentials of its addresses; true when the line had some. */
static bool hide_credentials(const char *line, struct text *out)
{
    bool hidden = false;
    for (const char *at = line; *at != '\0';) {
        const char *scheme = strstr(at, "://");
        const char *end = scheme != NULL ? scheme + strlen("://") : at + strlen(at);
        size_t length = scheme != NULL ? credential_length(end) : 0;
        text_append_bytes(out, at, (size_t)(end - at));
        text_append(out, length > 0 ? HIDDEN : "");
        hidden = hidden || length > 0;
        at = end + length;
    }
    return hidden;
}

/* A copy of the environment without credentials; NULL: its requirements have none. */
static json_t *shown_environment(const struct job_spec *spec)
{
    json_t *environment = NULL;
    size_t index;
    json_t *line;
    json_array_foreach ((json_t *)(uintptr_t)spec->environment.requirements, index, line) {
        autotext struct text text = {0};
        if (hide_credentials(json_string_value(line), &text)) {
            if (environment == NULL) {
                environment = json_deep_copy(json_object_get(spec->json, "environment"));
            }
            json_array_set_new(json_object_get(environment, "requirements"), index, json_string(text.bytes));
        }
    }
    return environment;
}

/* --- the whole --- */

char *job_spec_shown(const struct job_spec *spec)
{
    json_t *function = shown_function(spec), *env = shown_env(spec), *environment = shown_environment(spec);
    if (function == NULL && env == NULL && environment == NULL) {
        return NULL;
    }
    autojson json_t *shown = json_copy(spec->json);
    if (function != NULL) {
        member_put(shown, "function", function);
    }
    if (env != NULL) {
        member_put(shown, "env", env);
    }
    if (environment != NULL) {
        member_put(shown, "environment", environment);
    }
    return json_text(shown);
}

bool job_spec_hides(const struct job_spec *spec)
{
    autojson json_t *env = shown_env(spec), *environment = shown_environment(spec);
    return env != NULL || environment != NULL || spec->function.base64 != NULL;
}
