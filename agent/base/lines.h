/* SPDX-License-Identifier: Apache-2.0 */
/* Where to cut a stream of log bytes. Pure. */
#ifndef AGENT_LINES_H
#define AGENT_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* How much of a piece is to be sent now. full: there is no room for more in it; final: the stream has ended;
 * old: the last line has waited for its end long enough. Up to the last newline, else to the last whole UTF-8
 * character; 0 is: wait. */
size_t lines_cut(const char *bytes, size_t length, bool full, bool final, bool old);

#endif
