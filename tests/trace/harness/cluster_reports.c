/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes of the simulated cluster report of attempts: ranks and values as their orders say. */
#include "tests/trace/harness/cluster.h"

#include <string.h>

enum err_code cluster_report(struct cluster *cluster, const char *id, const char *name,
                             const struct report_message *report)
{
    const struct node_row *row = rows_node(cluster->rows, name);
    struct report_message whole = *report;
    whole.node = name;
    if (whole.boot_id == NULL) {
        whole.boot_id = row != NULL ? row->boot_id : "";
    }
    if (whole.attempt_id == 0) {
        whole.attempt_id = rows_attempt_id(cluster->rows, id);
    }
    return cluster_step(cluster, &(struct input){.kind = INPUT_REPORT, .report = &whole});
}

enum err_code prepared(struct cluster *cluster, const char *id, const char *name)
{
    struct report_message report = {.kind = REPORT_PREPARED, .address = "10.0.0.1", .master_port = 20000};
    return cluster_report(cluster, id, name, &report);
}

enum err_code running(struct cluster *cluster, const char *id, const char *name)
{
    struct report_message report = {.kind = REPORT_RUNNING};
    return cluster_report(cluster, id, name, &report);
}

enum err_code declined(struct cluster *cluster, const char *id, const char *name)
{
    struct report_message report = {
        .kind = REPORT_DECLINED, .cause = CAUSE_DECLINED, .text = "GPU 0 is in use"};
    return cluster_report(cluster, id, name, &report);
}

enum err_code failed(struct cluster *cluster, const char *id, const char *name, int64_t rank, int64_t code)
{
    struct rank_exit exit = {.rank = rank, .code = code, .signal = code > 128 ? code - 128 : 0};
    struct report_message report = {
        .kind = REPORT_FAILED, .cause = CAUSE_RANK_FAILED, .ranks = &exit, .rank_count = 1};
    return cluster_report(cluster, id, name, &report);
}

/* The ranks that the node was told to run. */
static size_t ranks_of(const struct cluster *cluster, const char *id, const char *name,
                       struct rank_exit *exits, struct rank_exit like)
{
    size_t count = 0;
    struct node_orders *orders = core_orders(cluster->core, name);
    for (size_t i = 0; i < orders->count; i++) {
        const struct order *order = &orders->items[i].order;
        for (int64_t j = 0; strcmp(order->job_id, id) == 0 && j < order->local_ranks; j++) {
            exits[count] = like;
            exits[count++].rank = order->first_rank + j;
        }
    }
    node_orders_destroy(orders);
    return count;
}

enum err_code exited(struct cluster *cluster, const char *id, const char *name, int64_t code)
{
    struct rank_exit exits[64];
    struct rank_exit like = {.code = code, .signal = code > 128 ? code - 128 : 0};
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .flushed = true};
    report.rank_count = ranks_of(cluster, id, name, exits, like);
    return cluster_report(cluster, id, name, &report);
}

enum err_code returned(struct cluster *cluster, const char *id, const char *name, size_t values)
{
    static const uint8_t digest[32] = {7};
    struct rank_exit exits[64];
    struct rank_result results[64];
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .flushed = true};
    report.rank_count = ranks_of(cluster, id, name, exits, (struct rank_exit){0});
    for (size_t i = 0; i < values; i++) {
        results[i] = (struct rank_result){
            .rank = exits[i].rank, .kind = RESULT_VALUE, .size = 1, .digest = digest, .bytes = "p"};
    }
    report.results = results;
    report.result_count = values;
    return cluster_report(cluster, id, name, &report);
}

enum err_code stopped(struct cluster *cluster, const char *id, const char *name)
{
    struct rank_exit exits[64];
    struct report_message report = {.kind = REPORT_EXITED, .ranks = exits, .flushed = true};
    report.rank_count =
        ranks_of(cluster, id, name, exits, (struct rank_exit){.code = 143, .signal = 15, .by_us = true});
    return cluster_report(cluster, id, name, &report);
}
