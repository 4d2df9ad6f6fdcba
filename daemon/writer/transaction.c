/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/writer/transaction.h"

#include <stdlib.h>

#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

static void steps_add(struct step_list *list, const struct step *step)
{
    XGROW(list->items, list->count, list->room, 64);
    list->items[list->count++] = *step;
}

static void steps_clear(struct step_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        step_finish(&list->items[i]);
    }
    list->count = 0;
}

void transaction_finish(struct transaction *transaction)
{
    steps_clear(&transaction->batch);
    steps_clear(&transaction->lazy);
    free(transaction->batch.items);
    free(transaction->lazy.items);
}

bool transaction_open(struct transaction *transaction)
{
    if (transaction->open) {
        return true;
    }
    if (!store_begin(transaction->store, &transaction->failure)) {
        return false;
    }
    transaction->open = true;
    for (size_t i = 0; i < transaction->lazy.count; i++) {
        const struct step *step = &transaction->lazy.items[i];
        if (!store_apply(transaction->store, step->changes, step->change_count, &transaction->failure)) {
            return false;
        }
        steps_add(&transaction->batch, step);
    }
    transaction->lazy.count = 0;
    return true;
}

bool transaction_apply(struct transaction *transaction, const struct change *changes, size_t count)
{
    return transaction_open(transaction) &&
           store_apply(transaction->store, changes, count, &transaction->failure);
}

bool transaction_keep(struct transaction *transaction, struct step *step, int64_t now_ms)
{
    if (step->lazy && !transaction->open) {
        if (transaction->lazy.count == 0) {
            transaction->lazy_since_ms = now_ms;
        }
        steps_add(&transaction->lazy, step);
        return true;
    }
    if (step->change_count > 0 && !transaction_apply(transaction, step->changes, step->change_count)) {
        step_finish(step);
        return false;
    }
    steps_add(&transaction->batch, step);
    return true;
}

int64_t transaction_due_ms(const struct transaction *transaction)
{
    return transaction->lazy.count > 0 ? transaction->lazy_since_ms + LAZY_COMMIT_MS : INT64_MAX;
}

static bool changes_orders(const struct step_list *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].dirty_count > 0) {
            return true;
        }
    }
    return false;
}

bool transaction_takes_lazy(const struct transaction *transaction, bool closing, int64_t now_ms)
{
    return transaction->lazy.count > 0 &&
           (closing || now_ms >= transaction_due_ms(transaction) || changes_orders(&transaction->batch));
}

bool transaction_commit(struct transaction *transaction)
{
    if (!store_commit(transaction->store, &transaction->failure)) {
        return false;
    }
    transaction->open = false;
    return true;
}

void transaction_clear(struct transaction *transaction)
{
    steps_clear(&transaction->batch);
}
