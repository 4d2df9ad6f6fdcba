/* SPDX-License-Identifier: Apache-2.0 */
/* What rows on the screen have beyond their lists: what nodes use, how much memory their GPUs have, and why
 * jobs wait. */
#ifndef CLI_TOP_DETAILS_H
#define CLI_TOP_DETAILS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/text/text.h"

/* The rows that are on the screen. {0} is none. */
struct top_shown {
    struct text_list nodes; /* names */
    struct text_list jobs;  /* ids of jobs that wait */
};
void top_shown_finish(struct top_shown *shown);

struct top_details;
/* The api is borrowed. */
struct top_details *top_details_create(struct api *api);
void top_details_destroy(struct top_details *details);

/* Asks for those of which nothing is known or what is known is old. */
void top_details_want(struct top_details *details, const struct top_shown *shown);
/* Takes replies in; true: there were some. */
bool top_details_step(struct top_details *details);
/* Is nothing to come? */
bool top_details_idle(const struct top_details *details);

/* The use of devices of a node, as top_sample_use makes it. New reference; NULL: nothing is known. */
json_t *top_details_use(const struct top_details *details, const char *node, const char *devices);
/* Why the job waits, a text; NULL: that is not known. Borrowed. */
const json_t *top_details_reason(const struct top_details *details, const char *job);

#endif
