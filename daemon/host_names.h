/* SPDX-License-Identifier: Apache-2.0 */
/* The names and addresses of this host, by which others may reach it. */
#ifndef DAEMON_HOST_NAMES_H
#define DAEMON_HOST_NAMES_H

#include <stddef.h>

struct host_list {
    char **items; /* owned; IPv6 addresses in brackets */
    size_t count;
};

/* Finds the names; the one by which others most likely reach this host comes first; never empty. May ask
 * DNS. */
void host_list_find(struct host_list *ret_list);
/* Adds a copy unless the list has the name. */
void host_list_add(struct host_list *list, const char *name);
void host_list_finish(struct host_list *list);

#endif
