/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that take long are made piece by piece: whoever comes meanwhile waits for a piece and not for an
 * answer. */
#ifndef HTTP_PIECES_H
#define HTTP_PIECES_H

#include <stdbool.h>

#include "daemon/http/request/request.h"

enum pieces_state { PIECES_MORE, PIECES_DONE, PIECES_FAILED };

/* An answer that is being made. Embed it as the first member of a struct from xzalloc; work and free are set,
 * the rest is zero. */
struct pieces {
    /* Makes a piece, some 60 us; after the last one it replies. */
    enum pieces_state (*work)(struct pieces *pieces, struct err *err);
    void (*free)(struct pieces *pieces);
    struct request *request;
    bool waits;
    struct pieces *prev, *next;
};

/* Called by a handler, which returns the same; takes the pieces. While nobody else comes, all is done at
 * once. */
bool pieces_begin(struct request *request, struct pieces *pieces, struct err *err);

/* Whether an answer waits for its next piece. */
bool pieces_wait(const struct server *server);
/* Once in each turn of the loop: goes on with one of them. */
void pieces_turn(struct server *server);

#endif
