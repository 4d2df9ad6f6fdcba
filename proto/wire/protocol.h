/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the protocol between controller and agent. It grows when the previous version of either side
 * could no longer follow. New members alone do not need that, because decoding ignores unknown members. */
#ifndef PROTO_PROTOCOL_H
#define PROTO_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

#define PROTOCOL       1 /* the protocol of these programs */
#define PROTOCOL_FIRST 1 /* the protocol of agents that do not say */

/* Whether a controller that speaks `own` accepts an agent of that protocol: the same or the previous one. So
 * the controller is upgraded first, and the agents after it, one by one. The error names the version of the
 * agent and the program to upgrade. */
bool protocol_check(int64_t own, int64_t protocol, const char *version, struct err *err);

#endif
