/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what rank 0 said means that MASTER_PORT was taken by another process. */
#ifndef AGENT_PORT_TAKEN_H
#define AGENT_PORT_TAKEN_H

#include <stdbool.h>
#include <stdint.h>

/* stderr: its end. heard: the shim has seen another process listen on the port when rank 0 failed. port 0: it
 * is not known. */
bool port_taken(const char *stderr_end, int64_t port, bool heard);

#endif
