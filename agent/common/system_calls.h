/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that jobs may not make, with --run-as owner. Needs only libc, and may be used between
 * vfork and exec. */
#ifndef AGENT_SYSTEM_CALLS_H
#define AGENT_SYSTEM_CALLS_H

#include <stdbool.h>

/* Whether the kernel can refuse system calls. */
bool system_calls_can_limit(void);

/* From here on the process, and all that it starts, is refused these system calls, and gains no rights by
 * executing a program. For good. False with errno. */
bool system_calls_limit(void);

#endif
