/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the ranks of an attempt left in its folder. Their content is not trusted. */
#ifndef AGENT_RANK_FILE_H
#define AGENT_RANK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a plain file in a subfolder of an attempt's folder (NULL: in the folder itself) for reading, and sets
 * its size. It follows no link. -1 when there is no such file. */
int rank_file_open(const char *logs, const char *folder, const char *name, int64_t *ret_size);

/* Reads such a file as a text, if it has at most max bytes; the caller frees it. ret_length may be NULL. NULL
 * when there is no such file. */
char *rank_file_read(const char *logs, const char *folder, const char *name, int64_t max, size_t *ret_length);

/* The message in a rank's error file, as one line of at most LIMIT_SAID_BYTES; NULL when there is none. The
 * caller frees it. */
char *rank_file_error(const char *logs, int64_t rank);

/* Likewise the finding of gpuctl_watch.py in the rank. */
char *rank_file_note(const char *logs, int64_t rank);

#endif
