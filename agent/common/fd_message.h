/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over local sockets that carry descriptors. */
#ifndef AGENT_FD_MESSAGE_H
#define AGENT_FD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FD_MESSAGE_MAX 5 /* descriptors of a message */

/* Sends bytes with descriptors, which the caller keeps. flags as for sendmsg; false with errno if not all
 * bytes were taken. */
bool fd_message_send(int to, const void *bytes, size_t size, const int *fds, size_t count, int flags);

/* Receives a text, ended by NUL, and the descriptor that came with it (-1: none), without waiting. Returns
 * the text's length, 0 at the end, -1 with errno. */
ssize_t fd_message_receive(int from, char *text, size_t room, int *ret_fd);
/* The same with up to `most` descriptors, FD_MESSAGE_MAX at most. */
ssize_t fd_message_receive_several(int from, char *text, size_t room, int *ret_fds, size_t most,
                                   size_t *ret_count);

#endif
