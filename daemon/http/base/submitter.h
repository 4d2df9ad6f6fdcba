/* SPDX-License-Identifier: Apache-2.0 */
/* Who submits a job: the sender of a request, or the owner of a schedule. */
#ifndef HTTP_SUBMITTER_H
#define HTTP_SUBMITTER_H

struct headers;
struct identity;
struct server;

struct submitter {
    struct server *server;
    const struct identity *who;
    const struct headers *headers; /* of the request; NULL: there is none */
};

#endif
