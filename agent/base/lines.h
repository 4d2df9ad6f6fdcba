/* SPDX-License-Identifier: Apache-2.0 */
/* Where to cut a stream of log bytes. Pure. */
#ifndef AGENT_LINES_H
#define AGENT_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* How much of a piece to send now: up to the last newline, else up to the last whole UTF-8 character; 0:
 * wait. full: the piece has no room for more; final: the stream has ended; old: the last line has waited long
 * enough for its end. */
size_t lines_cut(const char *bytes, size_t length, bool full, bool final, bool old);

#endif
