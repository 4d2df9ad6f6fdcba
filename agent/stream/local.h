/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a stream in an attempt: a command that its shim starts, or a socket. */
#ifndef AGENT_LOCAL_H
#define AGENT_LOCAL_H

#include "agent/attempt/attempt.h"
#include "proto/wire/stream_request.h"

enum { LOCAL_IN, LOCAL_OUT, LOCAL_ERR, LOCAL_ANSWER, LOCAL_ENDS };

/* Descriptors that do not block; -1: there is none. IN takes what the client sends; OUT and ERR give what it
 * gets. ANSWER is the socket to the shim, whose command ends when it is closed. */
struct local {
    int fds[LOCAL_ENDS];
};

/* Has the attempt's shim start the command. False with a sentence for the client. */
bool local_exec(struct attempt *attempt, const struct stream_request *request, struct local *ret_local,
                struct err *err);
/* Connects to the port on this host, as the job's user; the connection may still fail. */
bool local_connect(const struct attempt *attempt, const struct stream_request *request,
                   struct local *ret_local, struct err *err);
/* The terminal's window has another size. */
void local_resize(const struct local *local, int64_t rows, int64_t columns);

#endif
