/* SPDX-License-Identifier: Apache-2.0 */
/* The picture: totals, a table or one job, and a line with the question, the message or the keys. */
#ifndef CLI_TOP_DRAW_H
#define CLI_TOP_DRAW_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/top/top_columns.h"
#include "client/cli/top/data/top_details.h"
#include "client/cli/top/top_frame.h"
#include "client/cli/top/top_view.h"
#include "proto/base/text/text.h"

/* Rows and words to draw. All is borrowed. */
struct top_picture {
    const char *url;
    const json_t *rows[TOP_TABLES];
    enum top_extent extent[TOP_TABLES];
    const json_t *job;         /* of TOP_RANKS; NULL: not read yet */
    const struct text *output; /* of its selected rank; NULL: none */
    const char *trouble;       /* why nothing new comes; NULL: it does */
};

/* Adds the lines of the picture, as many as the look is high. Moves the view to where its selected row is;
 * nodes gets the names of the nodes whose rows are on the screen. */
void top_draw(struct top_view *view, const struct top_picture *picture, const struct top_look *look,
              struct text_list *frame, struct top_shown *shown);

/* Adds all tables, or the job, without a selection: each table has at most LIMIT_TOP_ONCE_ROWS rows. */
void top_draw_once(const struct top_view *view, const struct top_picture *picture,
                   const struct top_look *look, struct text_list *frame, struct top_shown *shown);

#endif
