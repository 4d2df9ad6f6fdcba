/* SPDX-License-Identifier: Apache-2.0 */
/* Whether rank 0's output means that another process had taken MASTER_PORT. */
#ifndef AGENT_PORT_TAKEN_H
#define AGENT_PORT_TAKEN_H

#include <stdbool.h>
#include <stdint.h>

/* stderr_end: the end of stderr. heard: the shim saw another process listen on the port when rank 0 failed.
 * port 0: unknown. */
bool port_taken(const char *stderr_end, int64_t port, bool heard);

#endif
