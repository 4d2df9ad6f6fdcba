/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: the one change of a job with which it would start now. */
#ifndef CORE_EXPLAIN_ADVICE_H
#define CORE_EXPLAIN_ADVICE_H

struct ahead;
struct core;
struct job;
struct outlook;
struct text;

/* Appends {"field", "value", "text"}, in the terms of a job spec, or null. job waits, be it for the time of a
 * question; outlook and ahead are its own. */
void advice_write(struct core *core, struct job *job, const struct outlook *outlook,
                  const struct ahead *ahead, struct text *out);

#endif
