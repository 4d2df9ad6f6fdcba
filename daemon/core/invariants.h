/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold. */
#ifndef CORE_INVARIANTS_H
#define CORE_INVARIANTS_H

struct core;
struct step;

/* After every step, in every build: what is cheap, and what the step has touched. Aborts. */
void invariants_after_step(const struct core *core, const struct step *step);

/* All of them; aborts. */
void invariants_check(struct core *core);

#endif
