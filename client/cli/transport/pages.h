/* SPDX-License-Identifier: Apache-2.0 */
/* Long lists, one page in memory at a time. */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "proto/base/err.h"

/* Calls take for each page of a list, to the one whose "next" is null. path may
 * have a query; "next" is asked for as the parameter `cursor`. Where the pages are of an attempt and path
 * names none, that of the first page is asked for from then on: an attempt that begins meanwhile does not mix
 * in. */
bool pages_each(struct api *api, const char *path, const char *cursor,
                bool (*take)(const json_t *page, void *closure, struct err *err), void *closure,
                struct err *err);

/* The list of that name in a page; NULL with ERR_MALFORMED where there is none. Borrowed. */
const json_t *pages_list(const json_t *page, const char *name, struct err *err);

/* Appends the states that are final, or the others, to the query of a path: "state=QUEUED,RUNNING". */
void pages_states(struct text *path, bool terminal);

/* Appends "name=NUMBER" to the query of a path; does nothing for a negative number. */
void pages_number(struct text *path, const char *name, int64_t number);

#endif
