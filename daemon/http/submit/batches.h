/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of submissions: many specs in one request, read in pieces of a turn of the loop. */
#ifndef HTTP_BATCHES_H
#define HTTP_BATCHES_H

#include <stdbool.h>

struct batches;
struct server;

struct batches *batches_create(void);
/* No request may be open. Takes NULL. */
void batches_destroy(struct batches *batches);

/* Once in each turn of the loop: reads the next piece of a batch. */
void batches_turn(struct batches *batches);
/* Whether the next turn has a piece to read. */
bool batches_wait(const struct batches *batches);

#endif
