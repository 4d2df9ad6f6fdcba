/* SPDX-License-Identifier: Apache-2.0 */
/* The newest orders of each node, and the poll that waits for them. */
#ifndef HTTP_OUTBOX_H
#define HTTP_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "proto/wire/messages.h"

struct outbox;
struct request;
struct server;

struct outbox *outbox_create(struct server *server);
/* No poll may be parked any more. */
void outbox_destroy(struct outbox *outbox);

/* The newest orders of a node: taken over; a parked poll that has not seen them is answered. */
void outbox_put(struct outbox *outbox, struct node_orders *orders);

/* Answers a poll, now or within POLL_PARK_MS. An older poll of the same node is answered first.
 * ERR_NOT_FOUND: the node is not registered with this agent. */
bool outbox_poll(struct outbox *outbox, struct request *request, const struct poll_message *message,
                 struct err *err);

/* The next answer to a poll of the node, which comes now if one is parked, tells it to open the stream.
 * Copies the order. */
void outbox_put_stream(struct outbox *outbox, const char *node, const struct stream_order *order);
/* It was not told yet, and is not to be told any more. */
void outbox_drop_stream(struct outbox *outbox, const char *node, const char *id);

/* The keys of the specs that the node's orders are of, *ret_count of them; the caller frees them. */
int64_t *outbox_specs(const struct outbox *outbox, const char *node, size_t *ret_count);
/* Whether an environment that the node stages names this text. */
bool outbox_stages(const struct outbox *outbox, const char *node, const char *text);

/* When the node was last sent PREPARE of a live attempt, and RUN or START, CLOCK_BOOTTIME; 0: not since the
 * server was opened. */
void outbox_sent(const struct outbox *outbox, const char *node, uint64_t attempt_id, int64_t *ret_prepare_us,
                 int64_t *ret_start_us);

/* A node's registration was accepted: its polls carry these ids from now on. It counts as a heartbeat.
 * agent_id may be NULL: the agent has none. */
void outbox_register(struct outbox *outbox, const char *node, const char *boot_id, const char *agent_id,
                     int64_t now_ms);
/* The node was removed: its polls are refused until it registers. */
void outbox_forget(struct outbox *outbox, const char *node);
/* A heartbeat of a node was accepted. */
void outbox_heartbeat(struct outbox *outbox, const char *node, int64_t now_ms);
/* When its last heartbeat came; -1: none since the server was opened. */
int64_t outbox_last_heartbeat(const struct outbox *outbox, const char *node);

/* true when the node is registered with this boot id, and this agent_id, which may be NULL: not said. */
bool outbox_knows(const struct outbox *outbox, const char *node, const char *boot_id, const char *agent_id);

/* From now on every poll is answered at once, and told to shut down. */
void outbox_shut_down(struct outbox *outbox);
/* true when every node that still sends heartbeats has been told. */
bool outbox_all_told(const struct outbox *outbox, int64_t now_ms);

#endif
