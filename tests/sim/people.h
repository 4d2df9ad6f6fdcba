/* SPDX-License-Identifier: Apache-2.0 */
/* The people of one run: they submit, cancel, hold, release and change jobs, repeat requests without an
 * answer, and remember their answers. */
#ifndef SIM_PEOPLE_H
#define SIM_PEOPLE_H

#include "tests/sim/world/sim.h"

#define SUBMISSIONS_MAX 512
#define LIMITED_PROJECT "red" /* the project that an operator may limit */

/* A job that a person submitted. */
struct submission {
    char key[48];     /* of its own: that of the request, and its place in a batch */
    char request[24]; /* the key of the request */
    size_t batch; /* jobs of the request, of which this is the first; 0: it is no batch, or not the first */
    const char *who, *project;
    char *body;
    int64_t retries, infra_retries, gpus;
    bool function, limited;
    char id[17]; /* the acknowledged id; "": not acknowledged */
    int status;  /* of the final answer; 0: none yet */
    bool cancel_acknowledged;
};

struct people *people_create(struct sim *sim);
void people_destroy(struct people *people);

/* To be called when the controller has drawn an id for the submission with this key. */
void people_issued(struct people *people, const char *key, const char *id);

size_t people_submissions(const struct people *people, const struct submission **ret_submissions);
/* The submission for which this id was drawn; NULL: none. */
const struct submission *people_submission_of(const struct people *people, const char *id);

/* People submit nothing new; held jobs are released, repeatedly. */
void people_come_to_rest(struct people *people);
/* Whether everyone has an answer. */
bool people_are_served(const struct people *people);

#endif
