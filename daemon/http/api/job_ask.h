/* SPDX-License-Identifier: Apache-2.0 */
/* What people ask of a live job: the way to the writer, and the answer, which is the job as it then is. */
#ifndef HTTP_JOB_ASK_H
#define HTTP_JOB_ASK_H

#include "daemon/core/core.h"

struct request;

/* How a kind of question is answered. */
struct job_ask_kind {
    int status;              /* of the answer */
    enum job_state achieved; /* an ended job in this state has what is asked for; JOB_STATE_COUNT: none has */
};

/* Asks the writer for an input about the job that the path names; its strings must live as long as the
 * request. A job of somebody else is not told apart from none; one that has ended is ERR_CONFLICT. */
bool job_ask(struct request *request, const struct input *input, const struct job_ask_kind *kind,
             struct err *err);

#endif
