/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by rank 0's last output whether MASTER_PORT was taken, which costs the job no retry. Another port
 * of the job, such as that of a web server in it, must not count: the output must name MASTER_PORT, as
 * torch's does, or another process was seen listening on it. */
#include "agent/output/port_taken.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* the first two are those of torch and its store, the third is the system's */
static const char *const words[] = {"EADDRINUSE", "errno: 98", "address already in use"};

static bool names_number(const char *line, size_t length, const char *number)
{
    size_t digits = strlen(number);
    const char *at = line, *end = line + length;
    while ((at = memmem(at, (size_t)(end - at), number, digits)) != NULL) {
        bool begins = at == line || !isdigit((unsigned char)at[-1]);
        bool ends = at + digits == end || !isdigit((unsigned char)at[digits]);
        if (begins && ends) {
            return true;
        }
        at++;
    }
    return false;
}

static bool is_about(const char *at, const char *text, const char *number)
{
    const char *line = at;
    while (line > text && line[-1] != '\n') {
        line--;
    }
    return names_number(line, strcspn(line, "\n"), number);
}

bool port_taken(const char *stderr_end, int64_t port, bool heard)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)port);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (const char *at = strcasestr(stderr_end, words[i]); at != NULL;
             at = strcasestr(at + 1, words[i])) {
            if (heard || (port > 0 && is_about(at, stderr_end, number))) {
                return true;
            }
        }
    }
    return false;
}
