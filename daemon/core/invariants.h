/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of invariants. */
#ifndef CORE_INVARIANTS_H
#define CORE_INVARIANTS_H

struct core;
struct step;

/* Runs after every step, in every build: cheap checks, and checks of the objects that the step changed.
 * Aborts on a violation. */
void invariants_after_step(const struct core *core, const struct step *step);

/* All of them; aborts. */
void invariants_check(struct core *core);

#endif
