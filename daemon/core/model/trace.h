/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: one line for each decision, for tests and for people who debug. */
#ifndef CORE_MODEL_TRACE_H
#define CORE_MODEL_TRACE_H

struct core;
struct member;
struct text;

/* Appends "[ time] " and the line, when somebody listens. */
void trace_line(const struct core *core, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends " a:0,1": where a member runs. */
void trace_place(const struct member *member, struct text *out);

#endif
