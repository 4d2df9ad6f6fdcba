/* SPDX-License-Identifier: Apache-2.0 */
/* Time and random bytes. Decisions use CLOCK_BOOTTIME; the wall clock is for display. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_boot_ms(void); /* milliseconds since boot, suspended time included */
int64_t clock_boot_us(void); /* the same in microseconds */
int64_t clock_wall_ms(void); /* milliseconds since 1970 */

/* RFC 3339 in UTC with milliseconds, "2026-11-21T09:30:00.125Z"; out has room for 32. */
void clock_format_wall(int64_t wall_ms, char *out, size_t size);

/* Fills the buffer from the system's random source; aborts when that fails. */
void random_fill(void *buffer, size_t length);

#endif
