/* SPDX-License-Identifier: Apache-2.0 */
/* What a person looks at: which table, how it is sorted and filtered, which row is selected, and which
 * question or message is shown. Keys change it; top_draw.h draws it. */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/cli/frame/verb.h"
#include "client/cli/top/top_columns.h"
#include "client/cli/top/top_frame.h"
#include "client/cli/top/top_keys.h"
#include "proto/base/text/text.h"
#include "proto/states.h"

#define TOP_FILTER_BYTES  64
#define TOP_TARGET_BYTES  256 /* a job's id or a node's name */
#define TOP_MESSAGE_BYTES 768 /* an error with its remedy */

/* What a key asks for, beyond another view. */
enum top_act {
    TOP_NOTHING,
    TOP_QUIT,
    TOP_OPEN,   /* show the job of `target` */
    TOP_BACK,   /* from the job to the tables */
    TOP_REREAD, /* another rank or stream is shown */
    TOP_CANCEL, /* these after the person said yes, for `target` */
    TOP_HOLD,
    TOP_RELEASE,
    TOP_DRAIN,
    TOP_RESUME
};

/* Of one table. */
struct top_place {
    size_t column;
    bool reverse;
    char filter[TOP_FILTER_BYTES];
    size_t selected, first;     /* rows; first is the one at the top */
    char key[TOP_TARGET_BYTES]; /* of the selected row, which stays selected wherever it goes; "": none */
};

struct top_view {
    enum top_table_id table; /* TOP_RANKS: of one job */
    struct top_place places[TOP_TABLES];
    bool filtering; /* keys go into the filter */
    bool help;
    enum top_act asked; /* it waits for y or n; TOP_NOTHING: none */
    char target[TOP_TARGET_BYTES];
    char job[RESOLVED_BYTES]; /* that TOP_RANKS shows */
    enum stream stream;       /* of its output */
    char message[TOP_MESSAGE_BYTES];
    size_t page; /* rows that fitted when it was drawn last */
};

void top_view_init(struct top_view *view);
/* Shows the job whose id it is; and the tables again. */
void top_view_open(struct top_view *view, const char *job);
void top_view_close(struct top_view *view);

/* Takes a key, which is about the picture as it was drawn last. */
enum top_act top_view_key(struct top_view *view, const struct top_key *key);

/* "cancel" for TOP_CANCEL, as the API and the person call it; NULL for acts that change nothing. */
const char *top_act_verb(enum top_act act);
/* Is the act one about a node? The others are about jobs. */
bool top_act_of_node(enum top_act act);
/* The rank whose output is shown. */
int64_t top_view_rank(const struct top_view *view);

#endif
