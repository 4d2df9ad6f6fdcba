/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of client/cli/top show: some nodes and jobs as the API has them, and how a picture is read.
 */
#ifndef TESTS_CLI_TOP_RIG_H
#define TESTS_CLI_TOP_RIG_H

#include <check.h>
#include <jansson.h>

#include "client/cli/top/top_keys.h"
#include "client/cli/top/top_view.h"
#include "proto/base/text/text.h"

#define NOW_MS 1800000000000 /* 2027-01-15T08:00:00Z */

#define JOB(id_, name_, gpus_, priority_, rest_)                                                             \
    "{\"id\":\"" id_ "\",\"name\":\"" name_ "\",\"owner\":\"ann\",\"state\":\"QUEUED\",\"gpus\":" gpus_      \
    ",\"priority\":" priority_ rest_ "}"
#define NODE(name_, state_, type_, gpus_, free_, unavailable_, rest_)                                        \
    "{\"name\":\"" name_ "\",\"state\":\"" state_ "\",\"pool\":\"p\",\"gpu_type\":\"" type_                  \
    "\",\"gpus\":" gpus_ ",\"free_gpus\":" free_ ",\"unavailable_gpus\":" unavailable_ rest_ "}"
#define PLACED(node_, first_, count_, devices_)                                                              \
    "{\"node\":\"" node_ "\",\"first_rank\":" first_ ",\"local_ranks\":" count_ ",\"devices\":\"" devices_   \
    "\",\"state\":\"RUNNING\"}"

/* Three of each. */
extern const char top_nodes[], top_queue[];

/* A wide terminal without colours. */
extern const struct top_look top_plain;

/* The caller's. */
json_t *top_parse(const char *text);
/* All lines, each with its end; the caller frees it. */
char *top_joined(const struct text_list *frame);
void top_press(struct top_keys *keys, const char *bytes);

#endif
