/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: the single change of a job that would let it start now. */
#ifndef CORE_EXPLAIN_ADVICE_H
#define CORE_EXPLAIN_ADVICE_H

struct ahead;
struct core;
struct job;
struct outlook;
struct text;

/* Appends {"field", "value", "text"}, in the terms of a job spec, or null. job waits, possibly only during a
 * question; outlook and ahead belong to it. */
void advice_write(struct core *core, struct job *job, const struct outlook *outlook,
                  const struct ahead *ahead, struct text *out);

#endif
