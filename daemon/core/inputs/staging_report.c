/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the reports of nodes on their environments. A report from an earlier boot is refused. job.c decides
 * what a failure means for a job. */
#include "daemon/core/inputs/staging_report.h"

#include "daemon/core/fleet/node.h"
#include "daemon/core/fleet/staging.h"
#include "daemon/core/lifecycle/job.h"
#include "daemon/core/model/state.h"

bool staging_report_take(struct core *core, const struct input *input, struct err *err)
{
    const struct staging_message *message = input->staging;
    struct node *node = node_find(core, message->node);
    if (!node_speaks(node, message->boot_id, NULL)) {
        return err_field(err, ERR_NOT_FOUND, "node", "register again", "node %.64s is not registered",
                         message->node);
    }
    struct staging_failure failure;
    if (staging_take(core, node, message, &failure)) {
        job_environment_failed(core, failure.environment, node, failure.text, failure.by_user);
    }
    return true;
}
