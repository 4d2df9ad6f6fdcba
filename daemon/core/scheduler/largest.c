/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the largest gang that the registered nodes could ever hold, busy or not. */
#include "daemon/core/scheduler/largest.h"

#include "daemon/core/model/state.h"
#include "daemon/core/scheduler/fit.h"

static bool has_one_node(const struct search *search, const struct partition *partition)
{
    for (size_t i = 0; i < partition->count; i++) {
        if (fit_offer(search, partition->capacities[i]) >= search->request->units) {
            return true;
        }
    }
    return false;
}

bool largest_fits_one_node(struct core *core, const struct resource_request *request)
{
    const struct search search = fit_search(core, request, VIEW_REGISTERED, NULL);
    bool fits = false;
    for (const struct partition *partition = core->partitions;
         partition != NULL && !fits && request->nodes <= 1; partition = partition->next) {
        fits = fit_allowed(&search, partition) && has_one_node(&search, partition);
    }
    return fits;
}

int64_t largest_gang(struct core *core, const struct resource_request *request,
                     const struct partition **ret_partition)
{
    const struct search search = fit_search(core, request, VIEW_REGISTERED, NULL);
    const struct partition *best = NULL;
    int64_t largest = 0;
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        int64_t here = fit_allowed(&search, partition) ? fit_largest(&search, partition) : 0;
        if (here > largest) {
            largest = here;
            best = partition;
        }
    }
    if (ret_partition != NULL) {
        *ret_partition = best;
    }
    return largest;
}

int64_t largest_of_job_class(struct core *core, struct job_class *job_class)
{
    if (job_class->registry != core->registry) {
        job_class->registry = core->registry;
        job_class->largest = largest_gang(core, &job_class->request, NULL);
    }
    return job_class->largest;
}
