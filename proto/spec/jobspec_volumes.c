/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the volumes that a job asks for, and which nodes can give them. A place where a volume is mounted
 * hides nothing that a node needs: folders of the system are refused here, and the node refuses one that is
 * not empty. The core decides which nodes have the volumes. */
#include <ctype.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/spec/jobspec_parts.h"
#include "proto/spec/node_label.h"

#define VARIABLE "GPUCTL_VOLUME_"

#define REMEDY    "write NAME, NAME:/PATH, NAME:ro or NAME:/PATH:ro; with rw in place of ro it must be writable"
#define READ_ONLY ":ro"
#define WRITABLE  ":rw"

/* Folders of the system, and those that each attempt has of its own. */
static const char *const system_folders[] = {"/bin",   "/boot",   "/dev",  "/etc",  "/lib", "/lib32",
                                             "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin",
                                             "/sys",   "/tmp",    "/usr",  "/var"};
#define SYSTEM_FOLDERS (sizeof system_folders / sizeof system_folders[0])

static bool refuse(size_t index, const char *hint, struct err *err, const char *what, const char *value)
{
    autofree char *field = xprintf("volumes[%zu]", index);
    return err_field(err, ERR_FIELD, field, hint, "%s %s%.*s", field, what, LIMIT_NAME_BYTES, value);
}

char *jobspec_variable(const char *begin, const char *name)
{
    char *variable = xprintf("%s%s", begin, name);
    for (char *c = variable; *c != '\0'; c++) {
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
    }
    return variable;
}

bool jobspec_is_volume_name(const char *name)
{
    return text_is_name(name, LIMIT_NAME_BYTES - (int)strlen(VOLUME_LABEL));
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

bool jobspec_take_access(char *text, enum volume_access *ret_access)
{
    bool read_only = ends_with(text, READ_ONLY), given = read_only || ends_with(text, WRITABLE);
    *ret_access = read_only ? VOLUME_READ_ONLY : given ? VOLUME_WRITABLE : VOLUME_AS_GIVEN;
    if (given) {
        text[strlen(text) - strlen(READ_ONLY)] = '\0';
    }
    return given;
}

bool jobspec_is_plain_path(const char *path)
{
    return path[0] == '/' && jobspec_is_inner_path(path + 1) && strlen(path) <= LIMIT_PATH_BYTES;
}

static bool is_system_path(const char *path)
{
    size_t first = 1 + strcspn(path + 1, "/");
    for (size_t i = 0; i < SYSTEM_FOLDERS; i++) {
        if (strlen(system_folders[i]) == first && strncmp(path, system_folders[i], first) == 0) {
            return true;
        }
    }
    return false;
}

bool jobspec_check_mount_path(const char *array, size_t index, const char *path, struct err *err)
{
    autofree char *field = xprintf("%s[%zu]", array, index);
    if (!jobspec_is_plain_path(path)) {
        return err_field(err, ERR_FIELD, field, "give an absolute path without . and .., such as /data",
                         "%s has no path to be mounted at: %.*s", field, LIMIT_NAME_BYTES, path);
    }
    return !is_system_path(path) ||
           err_field(err, ERR_FIELD, field, "mount it elsewhere, at /data or /mnt/data for instance",
                     "%s would be mounted in a folder of the system: %.*s", field, LIMIT_NAME_BYTES, path);
}

/* NAME[:PATH][:ro|:rw] */
static bool decode_volume(const char *text, size_t index, struct job_volume *volume, struct err *err)
{
    volume->name = xstrdup(text);
    jobspec_take_access(volume->name, &volume->access);
    char *colon = strchr(volume->name, ':');
    if (colon != NULL) {
        *colon = '\0';
        volume->path = colon + 1;
    }
    if (!jobspec_is_volume_name(volume->name)) {
        return refuse(index, REMEDY, err, "names no volume", "");
    }
    volume->variable = jobspec_variable(VARIABLE, volume->name);
    return volume->path == NULL || jobspec_check_mount_path("volumes", index, volume->path, err);
}

static bool check_others(const struct job_volume *volumes, size_t index, struct err *err)
{
    const struct job_volume *volume = &volumes[index];
    for (size_t i = 0; i < index; i++) {
        if (strcmp(volumes[i].name, volume->name) == 0) {
            return refuse(index, "name it once", err, "names a volume again: ", volume->name);
        }
        if (strcmp(volumes[i].variable, volume->variable) == 0) {
            return refuse(index, "have the operator give one of them another name", err,
                          "has the variable of another volume: ", volume->variable);
        }
        if (volume->path != NULL && volumes[i].path != NULL &&
            jobspec_paths_collide(volume->path, volumes[i].path)) {
            return refuse(index, "mount it elsewhere", err, "is where another volume is: ", volume->path);
        }
    }
    return true;
}

bool jobspec_decode_volumes(const json_t *json, struct job_volume **ret_volumes, size_t *ret_count,
                            struct err *err)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count > LIMIT_JOB_VOLUMES) {
        return err_field(err, ERR_FIELD, "volumes", "write [\"data:/data:ro\"]",
                         "volumes must be an array of at most %d texts", LIMIT_JOB_VOLUMES);
    }
    struct job_volume *volumes = *ret_volumes = xzalloc((count + 1) * sizeof *volumes);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(json, i));
        *ret_count = i + 1;
        if (text == NULL) {
            return refuse(i, REMEDY, err, "must be a text", "");
        }
        if (!decode_volume(text, i, &volumes[i], err) || !check_others(volumes, i, err)) {
            return false;
        }
    }
    return true;
}

bool jobspec_check_checkpoint_volume(struct job_spec *spec, struct err *err)
{
    const char *name = spec->checkpoint_volume;
    for (size_t i = 0; i < spec->volume_count && name != NULL; i++) {
        struct job_volume *volume = &spec->volumes[i];
        if (strcmp(volume->name, name) != 0) {
            continue;
        }
        if (volume->access == VOLUME_READ_ONLY) {
            return err_field(err, ERR_FIELD, "checkpoint_volume", "ask for the volume without :ro",
                             "checkpoint_volume must be writable, and volume %s is read-only", name);
        }
        volume->access = VOLUME_WRITABLE;
        return true;
    }
    return name == NULL ||
           err_field(err, ERR_FIELD, "checkpoint_volume", "add it to volumes",
                     "checkpoint_volume must be one of the job's volumes, and %s is none of them", name);
}

void jobspec_volumes_free(struct job_volume *volumes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(volumes[i].name);
        free(volumes[i].variable);
    }
    free(volumes);
}

json_t *jobspec_encode_volumes(const struct job_volume *volumes, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct job_volume *volume = &volumes[i];
        const char *access = volume->access == VOLUME_READ_ONLY  ? READ_ONLY
                             : volume->access == VOLUME_WRITABLE ? WRITABLE
                                                                 : "";
        json_array_append_new(array, json_sprintf("%s%s%s%s", volume->name, volume->path != NULL ? ":" : "",
                                                  volume->path != NULL ? volume->path : "", access));
    }
    return array;
}

/* A node that cannot mount has a volume at the operator's path alone, and cannot take write access away. Into
 * a container every node mounts. */
static json_t *allowed(const struct job_volume *volume, bool in_image)
{
    json_t *values = json_array();
    bool anywhere = volume->path == NULL || in_image;
    json_array_append_new(values, json_string(VOLUME_LABEL_WRITABLE));
    if (volume->access != VOLUME_WRITABLE) {
        json_array_append_new(values, json_string(VOLUME_LABEL_READ_ONLY));
    }
    if (anywhere && volume->access != VOLUME_WRITABLE) {
        json_array_append_new(values, json_string(VOLUME_LABEL_READ_ONLY_FIXED));
    }
    if (anywhere && (volume->access != VOLUME_READ_ONLY || in_image)) {
        json_array_append_new(values, json_string(VOLUME_LABEL_WRITABLE_FIXED));
    }
    return values;
}

void jobspec_volume_labels(const struct job_volume *volumes, size_t count, bool in_image, json_t *labels)
{
    for (size_t i = 0; i < count; i++) {
        autofree char *key = xprintf(VOLUME_LABEL "%s", volumes[i].name);
        json_object_set_new(labels, key, allowed(&volumes[i], in_image));
    }
}
