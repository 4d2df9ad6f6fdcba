/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that joins pairs of sockets: the bytes that come on one go to the other. */
#ifndef HTTP_PUMP_H
#define HTTP_PUMP_H

#include "proto/base/err.h"

struct pump;
struct pump_pair;

/* ended is called by pump_collect for each pair that is over. NULL with *err. */
struct pump *pump_open(void (*ended)(void *closure), struct err *err);
/* Ends the thread, and calls ended for all pairs that are left. NULL has no effect. */
void pump_close(struct pump *pump);

/* Joins the sockets, which do not block and stay their owner's, until one side has ended and the other has
 * its last bytes, or does not take them. */
void pump_join(struct pump *pump, const int fds[2], void *closure);

/* A descriptor that can be read when pairs are over. */
int pump_fd(const struct pump *pump);
void pump_collect(struct pump *pump);

#endif
