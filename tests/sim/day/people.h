/* SPDX-License-Identifier: Apache-2.0 */
/* The people of the day: what they submit and when, and what they and the administrator do besides. */
#ifndef SIM_DAY_PEOPLE_H
#define SIM_DAY_PEOPLE_H

#include <jansson.h>

#include "tests/sim/day/day.h"
#include "tests/sim/day/plan.h"

/* Draws the whole day, and arranges it. */
struct people *people_create(struct day *day);
void people_destroy(struct people *people);

/* The plan of a job, or of the array of a task. It was submitted. */
const struct plan *people_plan(const struct people *people, const char *id);
/* Whether no node can make the environment of that key. */
bool people_key_is_broken(const struct people *people, const char *key);
/* The submissions that were taken: an object of them by id. */
json_t *people_tell(const struct people *people);

#endif
