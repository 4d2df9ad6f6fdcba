/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and writes the results of ranks: which ranks may have results, and which are missing. Results are
 * written in the same transaction as the exit of their ranks. The receiver of the report has checked the
 * bytes. report.c decides what a missing result means for the attempt. */
#include "daemon/core/inputs/result.h"

#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"

bool result_check(const struct member *member, const struct report_message *report, struct err *err)
{
    int64_t next = member->first_rank, end = next + member->local_ranks;
    for (size_t i = 0; i < report->result_count; i++) {
        int64_t rank = report->results[i].rank;
        if (rank < next || rank >= end) {
            return err_field(err, ERR_FIELD, "results", "report those of this node, one a rank, in order",
                             "a result of rank %lld does not belong here", (long long)rank);
        }
        next = rank + 1;
    }
    return true;
}

int64_t result_missing(const struct member *member, const struct report_message *report)
{
    int64_t wanted = member->first_rank;
    for (size_t i = 0; i < report->result_count; i++) {
        const struct rank_result *result = &report->results[i];
        wanted += result->kind == RESULT_VALUE && result->rank == wanted;
    }
    bool all = member->results_missing == 0 || wanted == member->first_rank + member->local_ranks;
    return all ? -1 : wanted;
}

void result_keep(struct core *core, struct member *member, const struct report_message *report)
{
    for (size_t i = 0; i < report->result_count; i++) {
        const struct rank_result *result = &report->results[i];
        record_result(core, member->attempt, result);
        if (result->kind == RESULT_VALUE && member->results_missing > 0) {
            member->results_missing--;
        }
    }
}
