/* SPDX-License-Identifier: Apache-2.0 */
/* Checks names and values. Clients may use a name as a path, so a name whose path resolves to a different one
 * is refused, as in MLflow. */
#include "daemon/mlflow/call/names.h"

#include <stdint.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/limits_tracking.h"

/* --- checks --- */

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters of other scripts consist of bytes above 127. */
static bool is_name_byte(char c)
{
    return is_alnum(c) || ((unsigned char)c & 0x80) != 0 || (c != '\0' && strchr("_-./: ", c) != NULL);
}

/* The number of bytes before character number limit, or of all. */
static size_t prefix_bytes(const char *value, size_t limit)
{
    size_t at = 0;
    for (; value[at] != '\0'; at++) {
        bool starts = ((unsigned char)value[at] & 0xc0) != 0x80;
        if (starts && limit-- == 0) {
            break;
        }
    }
    return at;
}

void name_check_length(struct call *call, const char *what, const char *value, size_t limit)
{
    if (value[prefix_bytes(value, limit)] != '\0') {
        call_refuse(call, "The %s '%.250s' exceeds the maximum length of %zu characters.", what, value,
                    limit);
    }
}

/* Whether no part of the path is empty, "." or "..". */
static bool is_normal_path(const char *name)
{
    for (const char *part = name;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0)) {
            return false;
        }
        if (part[length] == '\0') {
            return true;
        }
        part += length + 1;
    }
}

void name_check(struct call *call, const char *what, const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (!is_name_byte(*c)) {
            call_refuse(call,
                        "Invalid %s name: '%.300s'. Names may only contain alphanumerics, underscores (_), "
                        "dashes (-), periods (.), spaces ( ), colons (:), and slashes (/).",
                        what, name);
        }
    }
    if (!is_normal_path(name)) {
        call_refuse(call,
                    "Invalid %s name: '%.300s'. Taken as a path, a name must not be empty or resolve to "
                    "another name.",
                    what, name);
    }
    name_check_length(call, "name", name, LIMIT_TRACKING_KEY);
}

void name_check_experiment(struct call *call, const char *name)
{
    if (name[0] == '\0') {
        call_refuse(call, "Invalid experiment name: ''");
    }
    name_check_length(call, "experiment name", name, LIMIT_TRACKING_EXPERIMENT);
}

void name_check_registered(struct call *call, const char *name)
{
    if (name[strspn(name, " \t\n")] == '\0') {
        call_refuse(call, "Missing value for required parameter 'name'.");
    }
    if (strpbrk(name, "/:") != NULL || !is_normal_path(name)) {
        call_refuse(
            call, "Invalid model name '%.300s'. Names cannot contain '/' or ':', and cannot be '.' or '..'.",
            name);
    }
    name_check_length(call, "model name", name, LIMIT_REGISTRY_NAME);
}

void name_check_alias(struct call *call, const char *alias)
{
    bool ok = alias[0] != '\0';
    for (const char *c = alias; ok && *c != '\0'; c++) {
        ok = is_alnum(*c) || *c == '_' || *c == '-' || ((unsigned char)*c & 0x80) != 0;
    }
    if (!ok) {
        call_refuse(call,
                    "Invalid alias name: '%.300s'. Names are not empty and may only contain alphanumerics, "
                    "underscores (_), and dashes (-).",
                    alias);
    }
    name_check_length(call, "registered model alias name", alias, LIMIT_REGISTRY_ALIAS);
}

void name_check_run_id(struct call *call, const char *run_id)
{
    size_t length = strlen(run_id);
    bool ok = is_alnum(run_id[0]) && length <= LIMIT_TRACKING_RUN_ID;
    for (size_t i = 0; ok && i < length; i++) {
        ok = is_alnum(run_id[i]) || run_id[i] == '_' || run_id[i] == '-';
    }
    if (!ok) {
        call_refuse(call, "Invalid run ID: '%.300s'", run_id);
    }
}

/* Accepts "s3://..." or "/...", without characters that a client could misinterpret. */
void name_check_location(struct call *call, const char *location)
{
    size_t scheme = 0;
    while (is_alnum(location[scheme]) ||
           (scheme > 0 && strchr("+-.", location[scheme]) != NULL && location[scheme] != '\0')) {
        scheme++;
    }
    bool starts = location[0] == '/' || (scheme > 0 && location[scheme] == ':');
    if (!starts || strstr(location, "..") != NULL || strpbrk(location, "?#\n\r") != NULL ||
        strncmp(location, "runs:", 5) == 0) {
        call_refuse(call,
                    "Invalid artifact_location '%.300s': it must be a URI or an absolute path, without "
                    "\"..\", \"?\" and \"#\".",
                    location);
    }
    name_check_length(call, "artifact_location", location, LIMIT_TRACKING_LOCATION);
}

char *name_cut(const char *value, size_t limit)
{
    return xstrndup(value, prefix_bytes(value, limit));
}

char *name_fit(const char *name, const char *suffix)
{
    autofree char *fitted = name_cut(name, LIMIT_TRACKING_KEY - strlen(suffix));
    bool path = is_normal_path(fitted);
    for (char *c = fitted; *c != '\0'; c++) {
        if (!is_name_byte(*c) || (*c == '/' && !path)) {
            *c = '_';
        }
    }
    if (!is_normal_path(fitted)) { /* "", "." or ".." */
        fitted[strspn(fitted, ".")] = '\0';
        return xprintf("_%s%s", fitted, suffix);
    }
    return xprintf("%s%s", fitted, suffix);
}

/* --- random names --- */

static const char *const adjectives[] = {
    "amber", "bold",   "brisk", "calm",  "clear", "crisp",  "deep",   "eager",  "fair",  "fond",   "gentle",
    "glad",  "golden", "green", "keen",  "late",  "light",  "little", "lively", "lucid", "mellow", "mild",
    "noble", "plain",  "quick", "quiet", "rapid", "silver", "steady", "sunny",  "vivid", "warm",
};
static const char *const nouns[] = {
    "anchor", "badger", "beacon",  "birch", "bridge", "brook",  "canyon",  "cedar",
    "comet",  "crane",  "delta",   "ember", "falcon", "fjord",  "forest",  "garden",
    "harbor", "heron",  "island",  "lake",  "maple",  "meadow", "mesa",    "orchard",
    "otter",  "pebble", "prairie", "raven", "river",  "summit", "thicket", "willow",
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

char *name_draw_run(void)
{
    uint32_t chance[3];
    random_fill(chance, sizeof chance);
    return xprintf("%s-%s-%u", adjectives[chance[0] % COUNT(adjectives)], nouns[chance[1] % COUNT(nouns)],
                   chance[2] % 1000);
}

void tracking_draw_run_id(char out[TRACKING_RUN_ID_BYTES])
{
    uint8_t chance[(TRACKING_RUN_ID_BYTES - 1) / 2];
    random_fill(chance, sizeof chance);
    text_to_hex(chance, sizeof chance, out);
}
