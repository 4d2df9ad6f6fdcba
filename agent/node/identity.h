/* SPDX-License-Identifier: Apache-2.0 */
/* The id of an agent's state folder: two agents of one name have different ids. */
#ifndef AGENT_IDENTITY_H
#define AGENT_IDENTITY_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Reads the id, or makes one. The caller holds the folder's lock. */
bool identity_open(const char *state, char out[ID_LENGTH + 1], struct err *err);

#endif
