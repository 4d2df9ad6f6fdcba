/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the output of a batch job into files, and makes their names. The streams of several nodes are
 * merged; then each line says whose it is, as in gpuctl logs. */
#include "client/cli/slurm/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/transport/feed.h"
#include "client/cli/common/follow.h"
#include "client/cli/show/output.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

char *batch_output_path(const char *pattern, const char *id, const char *name, struct err *err)
{
    autotext struct text path = {0};
    const char *user = getenv("USER");
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%') {
            text_append_bytes(&path, at, 1);
            continue;
        }
        at++;
        const char *value = *at == 'j' || *at == 'J' || *at == 'A' ? id
                            : *at == 'x'                           ? name
                            : *at == 'u'                           ? user
                            : *at == '%'                           ? "%"
                                                                   : NULL;
        if (value == NULL) {
            err_field(err, ERR_USAGE, "output", "%j, %x, %u and %% are known",
                      "the pattern %s has a %% with what is not known here", pattern);
            return NULL;
        }
        text_append(&path, value);
    }
    return text_take(&path);
}

static FILE *open_pattern(const char *pattern, const struct job_view *job, struct err *err)
{
    autofree char *path = batch_output_path(pattern, job->id, job->name != NULL ? job->name : "job", err);
    char *slash = path != NULL ? strrchr(path, '/') : NULL;
    autofree char *folder = slash != NULL && slash != path ? xstrndup(path, (size_t)(slash - path)) : NULL;
    if (folder != NULL && !file_make_directories(folder, 0777, err)) {
        return NULL;
    }
    FILE *file = path != NULL ? fopen(path, "we") : NULL;
    if (path != NULL && file == NULL) {
        err_errno(err, "cannot write %s", path);
    }
    return file;
}

static bool copy_all(struct api *api, const struct job_view *job, FILE *out, FILE *errors, struct err *err)
{
    autofree char *path = xprintf("/v1/jobs/%s/logs?follow=0", job->id);
    autooutput struct output *output = output_create(out, errors, -1);
    autofeed struct feed *feed = feed_create(api, path, NULL);
    if (follow_many_ranks(job)) {
        output_prefix(output);
    }
    return follow_output(feed, output, err);
}

bool batch_write_output(struct api *api, const struct batch_options *options, const struct job_view *job,
                        struct err *err)
{
    if ((options->output == NULL && options->error == NULL) || job->array.tasks > 0) {
        return true;
    }
    autofclose FILE *out = open_pattern(options->output != NULL ? options->output : options->error, job, err);
    bool apart = options->output != NULL && options->error != NULL;
    autofclose FILE *errors = out != NULL && apart ? open_pattern(options->error, job, err) : NULL;
    if (out == NULL || (apart && errors == NULL)) {
        return false;
    }
    return copy_all(api, job, out, apart ? errors : out, err);
}
