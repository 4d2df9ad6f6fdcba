/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that list what the controller has: a row of a table for each, told by columns. */
#ifndef CLI_LIST_H
#define CLI_LIST_H

#include "client/cli/frame/verb.h"

struct listing {
    const char *path, *name; /* in the API, and of the list in its answer */
    /* The items that are shown, under another name; NULL: all. New reference. */
    json_t *(*choose)(const json_t *items);
    const char *shown;
    const struct column *columns;
    size_t count;
    /* The objects that have rows; NULL: the items themselves. New reference. */
    json_t *(*rows)(const json_t *items);
    const char *key; /* the member that -q shows */
    bool uncut;      /* its lines are never cut to the terminal */
};

#define LIST_COLUMNS(columns_) .columns = (columns_), .count = sizeof(columns_) / sizeof(columns_)[0]

#define LISTS(listing_) .reach = REACH_CONTROLLER, .need = NEED_API, .listing = &(listing_), .run = list_run

#define LIMIT_LISTED 100000

/* The function of a verb with a listing: all of it, once or as -w says. */
bool list_run(const struct call *call, int *ret_exit, struct err *err);

/* Appends items that were asked for otherwise, as -q and -o want them. */
void list_print(const struct call *call, const struct listing *listing, const json_t *items,
                struct text *out);

#endif
