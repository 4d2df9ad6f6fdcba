/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the ranks of an attempt left behind on its folder. Whoever wrote them is a stranger. */
#ifndef AGENT_RANK_FILE_H
#define AGENT_RANK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a plain file for reading in a folder of an attempt's folder (NULL: in that itself) and says how long
 * it is. No link is followed. -1 when there is none. */
int rank_file_open(const char *logs, const char *folder, const char *name, int64_t *ret_size);

/* The whole of such a file as a text, when it has at most max bytes; the caller frees it. *ret_length may be
 * NULL. NULL when there is no such file. */
char *rank_file_read(const char *logs, const char *folder, const char *name, int64_t max, size_t *ret_length);

/* What the error file of a rank says, in one line of LIMIT_SAID_BYTES at most; NULL when it says nothing. The
 * caller frees it. */
char *rank_file_error(const char *logs, int64_t rank);

/* Likewise what gpuctl_watch.py has found in the rank. */
char *rank_file_note(const char *logs, int64_t rank);

#endif
