/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that do one thing to each of several jobs. */
#ifndef CLI_FOR_EACH_JOB_H
#define CLI_FOR_EACH_JOB_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

struct api;

struct for_each_job {
    /* Returns the job as it then is, which is the caller's; NULL: it failed. */
    json_t *(*ask)(struct api *api, const char *id, const void *closure, struct err *err);
    const void *closure;
    const char *said; /* between the job's id and its state, if the answer has one */
};

/* Takes the arguments of the call for jobs, asks for one after the other, and shows what came of it. Goes on
 * after a failure, so that one wrong id keeps no other job from it; the first error is the verb's. */
bool for_each_job(const struct call *call, const struct for_each_job *each, struct err *err);

#endif
