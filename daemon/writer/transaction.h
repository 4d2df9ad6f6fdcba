/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's transaction with the store, and the steps of the core that it has or that wait for the next.
 * After a failure nothing more is done with it. */
#ifndef WRITER_TRANSACTION_H
#define WRITER_TRANSACTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"

struct step_list {
    struct step *items;
    size_t count;
    size_t room;
};

struct transaction {
    struct store *store;
    bool open;
    struct step_list batch; /* steps applied in the open transaction, and after it until they are cleared */
    struct step_list lazy;  /* steps to apply with the next one */
    int64_t lazy_since_ms;  /* when the first of these was done */
    struct err failure;     /* why a function here returned false */
};

void transaction_finish(struct transaction *transaction);

/* Opens it, unless it is open, and applies the lazy steps. */
bool transaction_open(struct transaction *transaction);
bool transaction_apply(struct transaction *transaction, const struct change *changes, size_t count);
/* Applies a step's changes now, or keeps them for the next transaction. It owns the step from then on. */
bool transaction_keep(struct transaction *transaction, struct step *step, int64_t now_ms);
/* When the lazy steps must be applied. */
int64_t transaction_due_ms(const struct transaction *transaction);
/* Whether they must be applied with what the batch has: orders reflect the state in memory, which includes
 * lazy steps that are not on disk yet. */
bool transaction_takes_lazy(const struct transaction *transaction, bool closing, int64_t now_ms);
bool transaction_commit(struct transaction *transaction);
void transaction_clear(struct transaction *transaction);

#endif
