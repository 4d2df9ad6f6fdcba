/* SPDX-License-Identifier: Apache-2.0 */
/* One reconciler, what it is told, and what it does: for test_reconciler*.c. */
#ifndef RECONCILER_RIG_H
#define RECONCILER_RIG_H

#include "agent/reconciler/reconciler.h"

#define HEARTBEAT 5000
#define LEASE     80000

extern struct reconciler *reconciler;

void reconciler_rig_open(void);
void reconciler_rig_close(void);

/* All actions so far, each as a word with what matters of it, separated by commas. */
#define expect(text) expect_at(text, __LINE__)
void expect_at(const char *expected, int line);

/* A reply that lists the attempt ids that are given. */
#define LIVE(...) listing((const uint64_t[]){__VA_ARGS__ __VA_OPT__(, ) 0})
struct poll_reply listing(const uint64_t *live);

void poll_with(struct poll_reply reply, const struct order *orders, size_t count);
/* A poll that lists one order. */
void order(struct order one);
void registered(int64_t sent_ms);
/* The controller takes a heartbeat that left at this time. */
void heartbeat_committed(int64_t number, int64_t sent_ms);
/* A member of the cluster that waits for orders, since time 1000. */
void join(void);

#endif
