/* SPDX-License-Identifier: Apache-2.0 */
/* Reads job files. It translates our own form: the fields of a job spec, and shorter ways to write some of
 * them. It promises that every error names file and line. airfile.c translates the form of `air`;
 * proto/spec/jobspec.c checks the fields. */
#include "client/cli/spec/jobfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/spec/short_forms.h"
#include "client/cli/spec/airfile.h"
#include "client/cli/bundle/bundle.h"
#include "client/cli/spec/environment.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"

json_t *jobfile_shell(const char *text)
{
    return json_pack("[s,s,s]", "bash", "-c", text);
}

char *jobfile_job_name(const char *text)
{
    char *name = xstrndup(text, LIMIT_NAME_BYTES);
    for (char *at = name; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        bool good = text_is_name(one, 1) || (at != name && strchr("._-", *at) != NULL);
        *at = good ? *at : at == name ? 'x' : '-';
    }
    return name;
}

/* --- scalars that are always text --- */

/* The text of a number or of true and false; NULL for anything else. */
static json_t *spelled(const struct yaml *yaml, const char *field, const json_t *value)
{
    const char *spelling =
        json_is_number(value) || json_is_boolean(value) ? yaml_spelling(yaml, field) : NULL;
    return spelling != NULL ? json_string(spelling) : NULL;
}

static void spell_out_members(const struct yaml *yaml, const char *field, json_t *object)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value)
    {
        autofree char *path = xprintf("%s.%s", field, name);
        json_t *text = spelled(yaml, path, value);
        if (text != NULL) {
            json_object_set_new(object, name, text);
        }
    }
}

void jobfile_spell_out(const struct yaml *yaml, const char *field, json_t *values)
{
    if (json_is_object(values)) {
        spell_out_members(yaml, field, values);
    }
    for (size_t i = 0; i < json_array_size(values); i++) {
        autofree char *path = xprintf("%s[%zu]", field, i);
        json_t *text = spelled(yaml, path, json_array_get(values, i));
        if (text != NULL) {
            json_array_set_new(values, i, text);
        }
    }
}

/* --- our own form --- */

/* `time_limit: 2h` becomes time_limit_s. */
static bool take_duration(struct jobfile *file, const char *name, const char *field, struct err *err)
{
    const json_t *value = json_object_get(file->spec, name);
    const char *text = value != NULL ? yaml_spelling(&file->yaml, name) : NULL;
    int64_t ms;
    if (value == NULL) {
        return true;
    }
    if (json_object_get(file->spec, field) != NULL) {
        return err_field(err, ERR_USAGE, name, "leave one of them out", "%s and %s say the same", name,
                         field);
    }
    if (text == NULL || !text_to_duration_ms(text, &ms)) {
        return err_field(err, ERR_USAGE, name, NULL, "%s must be a duration such as 90s, 15m or 2h", name);
    }
    json_object_set_new(file->spec, field, json_seconds(ms));
    json_object_del(file->spec, name);
    return true;
}

/* Its values reach the ranks as they stand in the file. */
static void spell_out_sweep(struct jobfile *file)
{
    const char *name;
    json_t *list;
    json_object_foreach (json_object_get(file->spec, "sweep"), name, list) {
        autofree char *path = xprintf("sweep.%s", name);
        jobfile_spell_out(&file->yaml, path, list);
    }
}

/* `early_signal: USR1@60` becomes the object of the API, which may stand there, too. */
static bool take_early_signal(struct jobfile *file, struct err *err)
{
    const char *text = json_string_of(file->spec, "early_signal");
    json_t *early = text != NULL ? early_read("early_signal", text, err) : NULL;
    if (early != NULL) {
        json_object_set_new(file->spec, "early_signal", early);
    }
    return text == NULL || early != NULL;
}

static bool take_own(struct jobfile *file, struct err *err)
{
    file->spec = json_deep_copy(file->yaml.json);
    static const char *const texts[] = {"command", "env", "labels", "environment", "after", "constraints"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        jobfile_spell_out(&file->yaml, texts[i], json_object_get(file->spec, texts[i]));
    }
    spell_out_sweep(file);
    after_spell_out(file->spec);
    const char *command = json_string_of(file->spec, "command");
    if (command != NULL) {
        json_object_set_new(file->spec, "command", jobfile_shell(command));
    }
    return take_duration(file, "time_limit", "time_limit_s", err) &&
           take_duration(file, "grace", "grace_s", err) && take_duration(file, "lease", "lease_s", err) &&
           take_duration(file, "keep_on_failure", "keep_on_failure_s", err) && take_early_signal(file, err) &&
           environment_read(file->folder, file->spec, err) && bundle_read(file->folder, file->spec, err);
}

/* --- files --- */

static bool translate(struct jobfile *file, bool ignore, struct err *err)
{
    const json_t *json = file->yaml.json;
    if (!json_is_object(json)) {
        return err_field(err, ERR_USAGE, NULL, "write \"command: python train.py\" for instance",
                         "%s:%zu: a job file must be a map of fields", file->name,
                         yaml_line(&file->yaml, ""));
    }
    bool good;
    if (airfile_is_one(json)) {
        file->spec = json_object();
        good = airfile_translate(&file->yaml, ignore, file->folder, file->spec, &file->notes, err);
    } else {
        good = take_own(file, err);
    }
    return good || jobfile_place(file, err);
}

bool jobfile_read(const char *path, bool ignore, struct jobfile *ret_file, struct err *err)
{
    autofree char *bytes = NULL;
    size_t length;
    return file_read(path, LIMIT_SUBMIT_BYTES, &bytes, &length, err) &&
           jobfile_parse(path, bytes, length, ignore, ret_file, err);
}

bool jobfile_parse(const char *path, const char *bytes, size_t length, bool ignore, struct jobfile *ret_file,
                   struct err *err)
{
    struct jobfile file = {.name = xstrdup(path), .folder = file_folder_of(path)};
    if (!yaml_parse(path, bytes, length, &file.yaml, err) || !translate(&file, ignore, err)) {
        jobfile_finish(&file);
        return false;
    }
    *ret_file = file;
    return true;
}

void jobfile_finish(struct jobfile *file)
{
    free(file->name);
    free(file->folder);
    yaml_finish(&file->yaml);
    json_decref(file->spec);
    notes_finish(&file->notes);
    *file = (struct jobfile){0};
}

bool jobfile_place(const struct jobfile *file, struct err *err)
{
    struct err inner = *err;
    if (file->name == NULL || inner.field[0] == '\0') {
        return false;
    }
    size_t line = yaml_line(&file->yaml, inner.field);
    return err_field(err, inner.code, inner.field, inner.hint, "%s:%zu: %s", file->name, line, inner.text);
}

const char *jobfile_bundle_field(const struct jobfile *file)
{
    return airfile_is_one(file->yaml.json) ? "code_source" : "bundle.source";
}

bool jobfile_check(const struct jobfile *file, const json_t *spec, struct err *err)
{
    struct job_spec decoded;
    json_t *copy = json_deep_copy(spec);
    if (json_object_get(json_object_get(copy, "bundle"), "source") != NULL) {
        json_object_del(copy, "bundle"); /* which is checked where it is packed */
    }
    after_pretend(copy); /* dependencies may be beginnings of ids */
    if (!job_spec_decode(copy, LIMIT_LEASE_MIN_MS, &decoded, err)) {
        return jobfile_place(file, err);
    }
    job_spec_finish(&decoded);
    return true;
}
