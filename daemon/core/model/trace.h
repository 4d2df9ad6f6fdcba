/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: one line per decision, for tests and debugging. */
#ifndef CORE_MODEL_TRACE_H
#define CORE_MODEL_TRACE_H

struct core;
struct member;
struct text;

/* Appends "[ time] " and the line, if a trace is set. */
void trace_line(const struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends " a:0,1": the node and devices of a member. */
void trace_place(const struct member *member, struct text *out);

#endif
