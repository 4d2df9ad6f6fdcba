/* SPDX-License-Identifier: Apache-2.0 */
/* One job of a request, from its spec to the input that makes it. */
#ifndef HTTP_SUBMISSION_H
#define HTTP_SUBMISSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/writer/spec_environment.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"

struct request;
struct submitter;

/* Starts as {0}. */
struct submission {
    struct job_spec spec;
    char *shown, *labels;                 /* or NULL */
    struct core_dependency *dependencies; /* or NULL */
    struct spec_environment environment;
    struct text requirements_text; /* those that stand in the spec */
    struct blob_row requirements;  /* the same as it is stored */
    char id[ID_LENGTH + 1];
    struct text body; /* the text of the spec with the trace of the request's headers; empty: it has none */
    size_t length;    /* of its text */
    int64_t job_key; /* of a job that was placed at once, or may have tasks that were: its spec is wanted in a
                        moment; 0: of none */
};

/* Whether the request may submit at all: the controller stays, and the disk has room. */
bool submission_allowed(const struct request *request, struct err *err);

/* Checks the whole spec, which is taken over, and what it names. The input borrows from the submission, from
 * text and from the submitter's identity. The submission is the caller's also after a failure. */
bool submission_read(const struct submitter *submitter, json_t *spec, const char *text, size_t length,
                     struct submission *submission, struct input *ret_input, struct err *err);
void submission_finish(struct submission *submission);

/* On the writer's thread: the job was made. Appends its receipt. */
void submission_made(struct submission *submission, const struct step *step, struct text *out);
/* On the HTTP thread: it is on disk. */
void submission_committed(struct submission *submission, const struct submitter *submitter);

#endif
