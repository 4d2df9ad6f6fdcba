/* SPDX-License-Identifier: Apache-2.0 */
/* A point in time. */
#ifndef DAEMON_WRITER_MOMENT_H
#define DAEMON_WRITER_MOMENT_H

#include <stdint.h>

/* By the clock for decisions, CLOCK_BOOTTIME, and by the wall clock for people. */
struct moment {
    int64_t boot_ms, wall_ms;
    int64_t boot_us; /* boot_ms in microseconds, for records; 0: boot_ms has the time */
};

#endif
