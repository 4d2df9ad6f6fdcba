/* SPDX-License-Identifier: Apache-2.0 */
/* Who is next, and why. */
#ifndef HTTP_QUEUE_H
#define HTTP_QUEUE_H

struct server;

void queue_open(struct server *server);
void queue_close(struct server *server);

#endif
