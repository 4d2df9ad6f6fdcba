/* SPDX-License-Identifier: Apache-2.0 */
/* The two parts of `gpuctl logs`: of a job, and of all tasks of an array. */
#ifndef CLI_LOGS_H
#define CLI_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "client/cli/show/output.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/wire/views.h"

struct logs_options {
    bool follow, timestamps;
    int64_t rank, attempt, tail; /* -1: not given */
    const char *stream;
    const char *since; /* a duration or a moment; or NULL */
    const char *grep;  /* or NULL */
    bool errors, ignore_case, fixed_strings;
};

/* The output of one job, as the options have it: those of its ranks are told apart where it has several.
 * task: its number in an array; -1: none. The caller destroys it. */
struct output *logs_output(const struct logs_options *options, const struct job_view *job, int64_t task);

/* Appends the path of a job's output, or of a search in it, with all that the options say. since_ms below 0:
 * they do not say it. */
void logs_path(const struct logs_options *options, const char *id, int64_t since_ms, struct text *path);

/* Shows what is stored of a job's output; *ret_last_id is where it ended, the caller's. */
bool logs_read_stored(struct api *api, const char *path, struct output *output, char **ret_last_id,
                      struct err *err);

/* Shows the matches of a search at the path. *ret_found is set where there is one. */
bool logs_search(struct api *api, const struct logs_options *options, struct text *path,
                 struct output *output, bool *ret_found, struct err *err);

/* Shows the output of all tasks of an array: of one task after the other, or with --follow of up to
 * CLIENT_ARRAY_FEEDS as it comes. *ret_found as for logs_search. */
bool logs_array(struct api *api, const struct logs_options *options, const struct job_view *array,
                int64_t since_ms, bool *ret_found, struct err *err);

#endif
