/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps groups so that a question is one search: names have no newline, so "\nNAME\n" is found only as a
 * whole line. */
#include "daemon/identity/groups.h"

#include <string.h>

bool groups_have(const char *groups, const char *name)
{
    size_t length = strlen(name);
    const char *at = groups != NULL ? groups : "";
    while ((at = strchr(at, '\n')) != NULL) {
        at++;
        if (strncmp(at, name, length) == 0 && at[length] == '\n') {
            return true;
        }
    }
    return false;
}

void groups_add(struct text *groups, const char *name)
{
    if (!groups_have(groups->bytes, name)) {
        text_printf(groups, "%s%s\n", groups->length == 0 ? "\n" : "", name);
    }
}
