/* SPDX-License-Identifier: Apache-2.0 */
/* The composite fields of a job spec: command, environment, labels and files. Values are never NULL. */
#ifndef PROTO_JOBSPEC_PARTS_H
#define PROTO_JOBSPEC_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/spec/jobspec.h"

bool jobspec_check_command(const json_t *command, struct err *err);
bool jobspec_check_env(json_t *env, struct err *err);
bool jobspec_check_labels(json_t *labels, struct err *err);
/* Whether it is the name of an environment variable, and of one that only gpuctl sets. */
bool jobspec_is_variable_name(const char *name);
bool jobspec_is_our_variable(const char *name);

/* Strings are borrowed from json. */
bool jobspec_decode_function(const json_t *json, struct job_function *ret_function, struct err *err);

/* Strings are borrowed from json. */
bool jobspec_decode_environment(const json_t *json, struct job_environment *ret_environment, struct err *err);
bool jobspec_decode_bundle(const json_t *json, struct job_bundle *ret_bundle, struct err *err);
bool jobspec_check_image(const char *field, const char *image, struct err *err);
/* Checks the image against the other fields, when all are decoded. */
bool jobspec_check_image_use(const struct job_spec *spec, struct err *err);

/* The signals by name, with or without SIG. */
#define JOBSPEC_EARLY_NAMES "USR1 USR2 TERM INT HUP CONT URG"
bool jobspec_early_signal_from_text(const char *text, enum early_signal *ret_signal);
/* Checks the member alone; jobspec.c checks it against the time limit. */
bool jobspec_decode_early_signal(const json_t *json, struct job_early_signal *ret_early, struct err *err);

/* Whether a variable's name marks its value as a secret, which is never shown. */
bool jobspec_is_secret(const char *name);

/* Set tasks, parallel, only and sweep of the spec; jobspec_check_tasks checks them together when all fields
 * are decoded. */
bool jobspec_decode_array(const json_t *json, struct job_spec *spec, struct err *err);
bool jobspec_decode_sweep(const json_t *json, struct job_spec *spec, struct err *err);
bool jobspec_check_tasks(struct job_spec *spec, struct err *err);
/* New reference. */
json_t *jobspec_encode_array(const struct job_spec *spec);

/* The caller frees *ret_files, also after a failure; its strings are borrowed from json. */
bool jobspec_decode_files(const json_t *json, struct job_file **ret_files, size_t *ret_count,
                          struct err *err);
/* New reference. */
json_t *jobspec_encode_files(const struct job_file *files, size_t count);

/* The caller frees *ret_after, also after a failure; its strings are borrowed from json. */
bool jobspec_decode_dependencies(const json_t *json, struct job_dependency **ret_after, size_t *ret_count,
                                 struct err *err);
/* New reference. */
json_t *jobspec_encode_dependencies(const struct job_dependency *after, size_t count);

/* The caller frees *ret_secrets, also after a failure. jobspec_check_secrets checks them against the other
 * fields, when all are decoded. */
bool jobspec_decode_secrets(const json_t *json, struct job_secret **ret_secrets, size_t *ret_count,
                            struct err *err);
bool jobspec_check_secrets(const struct job_spec *spec, struct err *err);
/* New reference. */
json_t *jobspec_encode_secrets(const struct job_secret *secrets, size_t count);

/* Whether a volume may have this name. */
bool jobspec_is_volume_name(const char *name);
/* Cuts ":ro" or ":rw" off the end of a text; false: it had neither. */
bool jobspec_take_access(char *text, enum volume_access *ret_access);
/* The caller gives *ret_volumes to jobspec_volumes_free, also after a failure. */
bool jobspec_decode_volumes(const json_t *json, struct job_volume **ret_volumes, size_t *ret_count,
                            struct err *err);
void jobspec_volumes_free(struct job_volume *volumes, size_t count);
/* New reference. */
json_t *jobspec_encode_volumes(const struct job_volume *volumes, size_t count);
/* Whether checkpoint_volume names a volume of the job that ranks may write to; from here on it must be
 * writable on the node, too. */
bool jobspec_check_checkpoint_volume(struct job_spec *spec, struct err *err);
/* Adds the labels that a node must have for these volumes to constraints. */
void jobspec_volume_labels(const struct job_volume *volumes, size_t count, bool in_image, json_t *labels);

/* The variable of a volume or an input: the name in capitals, and _ for all that is no letter or digit. The
 * caller frees it. */
char *jobspec_variable(const char *begin, const char *name);

/* Whether the path is absolute, plain, and in no folder of the system. ERR_FIELD names the item of the array.
 */
bool jobspec_check_mount_path(const char *array, size_t index, const char *path, struct err *err);

/* The caller gives *ret_inputs to jobspec_inputs_free, also after a failure. */
bool jobspec_decode_inputs(const json_t *json, struct job_input **ret_inputs, size_t *ret_count,
                           struct err *err);
/* Where the URL of an input leads, and the URL behind its scheme, which borrows from it; false: no node knows
 * it. */
bool jobspec_find_source(const char *url, enum input_source *ret_source, const char **ret_place);
/* Whether the volumes of the spec leave its inputs their places. */
bool jobspec_check_inputs(const struct job_spec *spec, struct err *err);
void jobspec_inputs_free(struct job_input *inputs, size_t count);
/* New reference. */
json_t *jobspec_encode_inputs(const struct job_input *inputs, size_t count);
/* Adds to the labels of jobspec_volume_labels the volumes that inputs are read from. */
void jobspec_add_input_labels(const struct job_input *inputs, size_t count, json_t *labels);

/* Whether the path is relative and each part is a plain name. */
bool jobspec_is_inner_path(const char *path);
/* Whether the path is absolute, and each part is a plain name. */
bool jobspec_is_plain_path(const char *path);
/* Whether the paths are equal, or one is a folder above the other. */
bool jobspec_paths_collide(const char *a, const char *b);

/* Whether the text is 64 lower-case hex digits. */
bool jobspec_is_hash(const char *text);

/* Finds the nearest known name: start with the unknown word, try all known names, then refuse. */
struct nearest {
    const char *word;
    const char *name; /* the nearest so far; NULL: none is near enough */
    unsigned distance;
};
struct nearest nearest_to(const char *word);
void nearest_try(struct nearest *nearest, const char *name);
/* Fails with ERR_UNKNOWN_FIELD about a field, with its whole path; returns false. */
bool nearest_refuse(const struct nearest *nearest, const char *path, struct err *err);

#endif
