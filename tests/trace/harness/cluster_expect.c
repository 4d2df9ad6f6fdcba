/* SPDX-License-Identifier: Apache-2.0 */
/* What a test expects of the simulated cluster: its trace, its orders, the rows of its jobs. */
#include "tests/trace/harness/cluster.h"

#include <check.h>

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

void expect(struct cluster *cluster, const char *trace)
{
    ck_assert_str_eq(or_empty(cluster->trace.bytes), trace);
    quiet(cluster);
}

void quiet(struct cluster *cluster)
{
    text_clear(&cluster->trace);
}

static void order_text(const struct order *order, struct text *out)
{
    text_printf(out, "%s %s/%lld rank ", order_phase_text(order->phase), order->job_id,
                (long long)order->attempt);
    text_printf(out, "%lld-%lld of %lld on ", (long long)order->first_rank,
                (long long)(order->first_rank + order->local_ranks - 1), (long long)order->world);
    for (size_t i = 0; i < order->device_count; i++) {
        text_printf(out, "%s%lld", i > 0 ? "," : "", (long long)order->devices[i]);
    }
    if (order->nodes > 1) {
        text_printf(out, " node %lld of %lld", (long long)order->node_rank, (long long)order->nodes);
    }
    if (order->master_port != 0) {
        text_printf(out, " master %s:%lld", order->master_address, (long long)order->master_port);
    }
    if (order->signal != EARLY_NONE) {
        text_printf(out, " %s", early_signal_text(order->signal));
    }
    if (order->kept) {
        text_append(out, " kept");
    }
    if (order->phase == ORDER_STOP) {
        text_printf(out, " %s grace %lld", cause_text(order->cause), (long long)order->grace_ms);
    }
    text_append(out, "\n");
}

static void orders_text(const struct cluster *cluster, const char *name, struct text *out)
{
    struct node_orders *orders = core_orders(cluster->core, name);
    ck_assert_ptr_nonnull(orders);
    for (size_t i = 0; i < orders->count; i++) {
        order_text(&orders->items[i].order, out);
    }
    node_orders_destroy(orders);
}

static void stagings_text(const struct cluster *cluster, const char *name, struct text *out)
{
    struct node_orders *orders = core_orders(cluster->core, name);
    for (size_t i = 0; i < orders->staging_count; i++) {
        text_printf(out, "stage %s\n", orders->stagings[i].key);
    }
    node_orders_destroy(orders);
}

void expect_orders(struct cluster *cluster, const char *name, const char *orders)
{
    autotext struct text text = {0};
    stagings_text(cluster, name, &text);
    orders_text(cluster, name, &text);
    ck_assert_str_eq(or_empty(text.bytes), orders);
}

struct listing {
    const struct cluster *cluster;
    struct text *out;
};

static void list_node(const char *name, void *closure)
{
    const struct listing *listing = closure;
    text_printf(listing->out, "%s:\n", name);
    orders_text(listing->cluster, name, listing->out);
}

void cluster_orders_text(const struct cluster *cluster, struct text *out)
{
    struct listing listing = {cluster, out};
    core_each_node(cluster->core, list_node, &listing);
}

void expect_job(struct cluster *cluster, const char *id, enum job_state state)
{
    const struct job_life *life = rows_job(cluster->rows, id);
    ck_assert_ptr_nonnull(life);
    ck_assert_str_eq(job_state_text(life->state), job_state_text(state));
}

void expect_ended(struct cluster *cluster, const char *id, enum job_state state, int64_t exit_code,
                  const char *reason)
{
    expect_job(cluster, id, state);
    const struct job_life *life = rows_job(cluster->rows, id);
    ck_assert_int_eq(life->exit_code, exit_code);
    ck_assert_str_eq(or_empty(life->reason), reason);
}

void expect_history(struct cluster *cluster, const char *id, const char *history)
{
    autotext struct text text = {0};
    rows_history(cluster->rows, id, &text);
    ck_assert_str_eq(or_empty(text.bytes), history);
}

void expect_field(struct cluster *cluster, const char *field)
{
    ck_assert(!cluster->step.ok);
    ck_assert_str_eq(cluster->step.err.field, field);
}
