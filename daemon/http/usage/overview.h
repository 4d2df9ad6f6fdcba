/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster at a glance. */
#ifndef HTTP_OVERVIEW_H
#define HTTP_OVERVIEW_H

struct server;

void overview_open(struct server *server);
void overview_close(struct server *server);

#endif
