/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through a long list, a few pages a reading. It promises that a reading takes at most CLIENT_TOP_PAGES
 * pages, that a row is known once, and that a row which is gone is forgotten when its part is read again. */
#include "client/cli/top/data/top_walk.h"

#include <stdlib.h>

#include "client/cli/show/print.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

static void drop(json_t **rows)
{
    json_decref(*rows);
    *rows = NULL;
}

void top_walk_drop(struct top_walk *walk)
{
    drop(&walk->newest);
    drop(&walk->walked);
    free(walk->cursor);
    walk->cursor = NULL;
    walk->pages = 0;
    walk->ended = false;
}

void top_walk_finish(struct top_walk *walk)
{
    top_walk_drop(walk);
    drop(&walk->rows);
}

/* Is the next page the first of the list, while the reading goes on elsewhere? */
static bool begins_aside(const struct top_walk *walk)
{
    return walk->pages == 0 && walk->cursor != NULL;
}

const char *top_walk_cursor(const struct top_walk *walk)
{
    return begins_aside(walk) ? NULL : walk->cursor;
}

/* Those from that place on. */
static void append(json_t *to, const json_t *rows, size_t from)
{
    for (size_t i = from; i < json_array_size(rows); i++) {
        json_array_append(to, json_array_get(rows, i));
    }
}

bool top_walk_take(struct top_walk *walk, const json_t *rows, const char *next)
{
    json_t **part = begins_aside(walk) ? &walk->newest : &walk->walked;
    *part = *part != NULL ? *part : json_array();
    append(*part, rows, 0);
    walk->pages++;
    if (part == &walk->walked) {
        free(walk->cursor);
        walk->cursor = next != NULL ? xstrdup(next) : NULL;
        walk->ended = next == NULL || json_array_size(walk->walked) >= LIMIT_TOP_ROWS;
    }
    return !walk->ended && walk->pages < CLIENT_TOP_PAGES;
}

/* Puts rows from the beginning of the list before those that are known, and leaves out of these what the
 * others go past. */
static void put_before(const char *key, const json_t *begin, json_t **known)
{
    json_t *places = json_object(), *joined = json_array();
    size_t i, first = 0;
    json_t *row;
    json_array_foreach (*known, i, row) {
        json_object_set_new(places, print_text_of(row, key), json_integer((json_int_t)i));
    }
    json_array_foreach (begin, i, row) {
        json_t *place = json_object_get(places, print_text_of(row, key));
        first = place != NULL ? (size_t)json_integer_value(place) + 1 : first;
    }
    append(joined, begin, 0);
    append(joined, *known, first);
    json_decref(places);
    json_decref(*known);
    *known = joined;
}

void top_walk_settle(struct top_walk *walk)
{
    if (walk->rows == NULL) {
        walk->rows = json_array();
        walk->extent = TOP_PARTLY;
    }
    if (walk->ended) {
        walk->extent = walk->cursor == NULL ? TOP_WHOLE : TOP_CUT;
        json_decref(walk->rows);
        walk->rows = walk->walked;
        walk->walked = NULL;
    } else {
        put_before(walk->key, walk->walked, &walk->rows);
    }
    if (walk->newest != NULL) {
        put_before(walk->key, walk->newest, &walk->rows);
    }
    drop(&walk->newest);
    walk->pages = 0;
    if (walk->ended) {
        top_walk_drop(walk);
    }
}
