/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel for the time and for random bytes. The calls always answer: the program aborts if the
 * kernel cannot. Deadlines and timers are left to the callers. */
#include "proto/base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <string.h>
#include <time.h>

static int64_t read_us(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        abort();
    }
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_boot_ms(void)
{
    return read_us(CLOCK_BOOTTIME) / 1000;
}

int64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

/* Writes value as width digits with leading zeros; returns the position after them. */
static char *put_digits(char *out, int value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + width;
}

static char *put_part(char *out, int value, int width, char end)
{
    out = put_digits(out, value, width);
    *out = end;
    return out + 1;
}

void clock_format_wall(int64_t wall_ms, char *out, size_t size)
{
    int ms = (int)(wall_ms % 1000);
    ms += ms < 0 ? 1000 : 0; /* before 1970 the remainder is negative */
    time_t seconds = (time_t)((wall_ms - ms) / 1000);
    struct tm utc;
    char date[32] = "0000-00-00T00:00:00.000Z";
    if (gmtime_r(&seconds, &utc) != NULL && utc.tm_year >= -1900 && utc.tm_year <= 9999 - 1900) {
        char *at = put_part(date, utc.tm_year + 1900, 4, '-');
        at = put_part(at, utc.tm_mon + 1, 2, '-');
        at = put_part(at, utc.tm_mday, 2, 'T');
        at = put_part(at, utc.tm_hour, 2, ':');
        at = put_part(at, utc.tm_min, 2, ':');
        at = put_part(at, utc.tm_sec, 2, '.');
        put_part(at, ms, 3, 'Z');
    }
    if (size > 0) { /* snprintf would cost more than all of the above */
        const size_t length = strnlen(date, size - 1);
        memcpy(out, date, length);
        out[length] = '\0';
    }
}

void random_fill(void *buffer, size_t length)
{
    unsigned char *at = buffer;
    while (length > 0) {
        ssize_t got = getrandom(at, length, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            abort();
        }
        at += got;
        length -= (size_t)got;
    }
}
