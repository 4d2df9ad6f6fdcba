/* SPDX-License-Identifier: Apache-2.0 */
/* Single things that are asked for again and again while their rows are on the screen, each under its key: a
 * node by its name, a job by its id. */
#ifndef CLI_TOP_LOOKUPS_H
#define CLI_TOP_LOOKUPS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/transport/api.h"
#include "proto/base/text/text.h"

/* What is asked for. */
struct top_lookup {
    void (*path)(const char *key, struct text *out); /* appends the path of the request */
    json_t *(*take)(const json_t *reply); /* what is kept of a reply: a new reference, NULL for nothing */
    int64_t period_ms;                    /* until it is asked for again */
};

struct top_lookups;
/* Both are borrowed. */
struct top_lookups *top_lookups_create(struct api *api, const struct top_lookup *lookup);
void top_lookups_destroy(struct top_lookups *lookups);

/* Asks, a few at once, for those of these keys of which nothing is known or what is known is old. Keys of the
 * call before that were not asked for yet are forgotten. */
void top_lookups_want(struct top_lookups *lookups, const struct text_list *keys);
/* Takes replies in; true: there were some. */
bool top_lookups_step(struct top_lookups *lookups);
/* Is nothing to come? */
bool top_lookups_idle(const struct top_lookups *lookups);

/* What the newest reply said; NULL: nothing. Borrowed. */
const json_t *top_lookups_find(const struct top_lookups *lookups, const char *key);

#endif
