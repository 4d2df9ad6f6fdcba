/* SPDX-License-Identifier: Apache-2.0 */
/* What each node should do, and the poll in which it waits to hear of it. */
#ifndef HTTP_MAILBOX_H
#define HTTP_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "proto/messages.h"

struct mailbox;
struct request;
struct server;

struct mailbox *mailbox_create(struct server *server);
/* No poll may be parked any more. */
void mailbox_destroy(struct mailbox *mailbox);

/* The newest orders of a node: taken over; a parked poll that has not seen them is answered. */
void mailbox_put(struct mailbox *mailbox, struct node_orders *orders);

/* Answers a poll, now or within POLL_PARK_MS. An older poll of the same node is answered first. */
void mailbox_poll(struct mailbox *mailbox, struct request *request, const struct poll_message *message);

/* When the node was last sent PREPARE of a live epoch, and RUN or START, CLOCK_BOOTTIME; 0: not since the
 * server was opened. */
void mailbox_sent(const struct mailbox *mailbox, const char *node, uint64_t epoch, int64_t *ret_prepare_us,
                  int64_t *ret_start_us);

/* A node's registration was accepted: its polls carry these ids from now on. It counts as a beat. agent_id
 * may be NULL: the agent has none. */
void mailbox_register(struct mailbox *mailbox, const char *node, const char *boot_id, const char *agent_id,
                      int64_t now_ms);
/* The node was removed: its polls are refused until it registers. */
void mailbox_forget(struct mailbox *mailbox, const char *node);
/* A beat of a node was accepted. */
void mailbox_beat(struct mailbox *mailbox, const char *node, int64_t now_ms);
/* When its last beat came; -1: none since the server was opened. */
int64_t mailbox_last_beat(const struct mailbox *mailbox, const char *node);

/* true when the node is registered with this boot id, and this agent_id, which may be NULL: not said. */
bool mailbox_knows(const struct mailbox *mailbox, const char *node, const char *boot_id,
                   const char *agent_id);

/* From now on every poll is answered at once, and told to shut down. */
void mailbox_shut_down(struct mailbox *mailbox);
/* true when every node that still beats has been told. */
bool mailbox_all_told(const struct mailbox *mailbox, int64_t now_ms);

#endif
