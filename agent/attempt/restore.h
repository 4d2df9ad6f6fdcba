/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the checkpoint that an attempt begins with, and lays its files out. */
#ifndef AGENT_RESTORE_H
#define AGENT_RESTORE_H

#include <stdint.h>

#include "agent/base/controller_client.h"
#include "agent/launch/users.h"
#include "agent/objects/object_client.h"
#include "proto/base/err.h"

struct restore;

/* Fills the folder, which is empty. user, who is borrowed, gets the files; NULL: they stay the agent's. done
 * is called later, once, after the restore was freed: with NULL when the folder has all files, or when there
 * is no checkpoint. */
struct restore *restore_begin(struct controller_client *controller, struct object_client *objects,
                              const char *node, uint64_t attempt_id, const char *folder,
                              const struct user *user, void (*done)(void *closure, const struct err *err),
                              void *closure);
/* Ends it without a call of done; NULL is allowed. */
void restore_cancel(struct restore *restore);

#endif
