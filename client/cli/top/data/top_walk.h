/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the API that may be too long to be read at once: it is read in readings of a few pages, each of
 * which goes on behind the one before, from the beginning to the end and then again. */
#ifndef CLI_TOP_WALK_H
#define CLI_TOP_WALK_H

#include <jansson.h>
#include <stdbool.h>

/* How many of the rows there are were read. */
enum top_extent {
    TOP_WHOLE,  /* all */
    TOP_PARTLY, /* others are still to be read for the first time */
    TOP_CUT     /* others are not read, because there are too many */
};

/* Begin with the key alone set. */
struct top_walk {
    const char *key; /* the member that tells rows apart */
    json_t *rows;    /* those that are known, in the order of the API; NULL: none yet. The rest is private */
    enum top_extent extent;
    json_t *newest; /* the first page of a reading that goes on in the middle; NULL: there is none */
    json_t *walked; /* of the readings since the last beginning; NULL: the next page is the first */
    char *cursor;   /* behind these */
    int pages;      /* of this reading */
    bool ended;     /* this reading has come to the end of the list */
};
void top_walk_finish(struct top_walk *walk);

/* The cursor of the page that comes next in this reading; NULL: the first page. Each reading begins with
 * that. */
const char *top_walk_cursor(const struct top_walk *walk);
/* Takes the rows of that page. False: the reading is over. */
bool top_walk_take(struct top_walk *walk, const json_t *rows, const char *next);
/* Ends a reading that is over: its rows are known from now on, in the place of what was known of that part.
 */
void top_walk_settle(struct top_walk *walk);
/* Forgets the reading, and where it was. What was known stays. */
void top_walk_drop(struct top_walk *walk);

#endif
