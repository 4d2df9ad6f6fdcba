/* SPDX-License-Identifier: Apache-2.0 */
/* The number of the protocol between controller and agent. It grows when a side of before could no longer
 * follow; new members alone do not need it, for decoding ignores what it does not know. */
#ifndef PROTO_PROTOCOL_H
#define PROTO_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

#define PROTOCOL       1 /* what these programs speak */
#define PROTOCOL_FIRST 1 /* that of agents which do not say */

/* Whether a controller that speaks `own` takes an agent of that protocol: the same or the one before, so that
 * the controller is upgraded first and the agents after it, one by one. The error names the version of the
 * agent and what to upgrade. */
bool protocol_check(int64_t own, int64_t protocol, const char *version, struct err *err);

#endif
