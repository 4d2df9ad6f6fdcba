/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a state, a cause and a reason of ours is called in Slurm. */
#include "client/cli/slurm/commands/job_states.h"

#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/states.h"

static const struct {
    const char *code, *text;
} states[] = {
#define X(name, code, spelling) [SLURM_##name] = {code, spelling},
    SLURM_STATES(X)
#undef X
};

/* States of Slurm in which no job is here. */
static const char *const others[] = {
    "S",  "SUSPENDED",    "CF", "CONFIGURING",   "BF", "BOOT_FAIL",   "DL", "DEADLINE", "RQ", "REQUEUED",
    "RH", "REQUEUE_HOLD", "RD", "RESV_DEL_HOLD", "RF", "REQUEUE_FED", "RS", "RESIZING", "RV", "REVOKED",
    "SE", "SPECIAL_EXIT", "SI", "SIGNALING",     "SO", "STAGE_OUT",   "ST", "STOPPED"};

const char *slurm_state_code(enum slurm_state state)
{
    return states[state].code;
}

const char *slurm_state_text(enum slurm_state state)
{
    return states[state].text;
}

/* --- of a job --- */

/* Have all of its nodes none of its processes any more? */
static bool is_completing(const json_t *job)
{
    const json_t *nodes = json_object_get(job, "nodes");
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        enum member_state state;
        const char *text = json_string_of(node, "state");
        if (text == NULL || !member_state_from_text(text, &state) ||
            (state != MEMBER_EXITED && state != MEMBER_FLUSHED && state != MEMBER_LOST)) {
            return false;
        }
    }
    return json_array_size(nodes) > 0;
}

static enum cause cause_of(const json_t *job)
{
    enum cause cause = CAUSE_NONE;
    const char *text = json_string_of(job, "cause");
    return text != NULL && cause_from_text(text, &cause) ? cause : CAUSE_NONE;
}

static enum slurm_state failed_state(enum cause cause)
{
    return cause == CAUSE_NODE_LOST       ? SLURM_NODE_FAIL
           : cause == CAUSE_PREEMPTED     ? SLURM_PREEMPTED
           : cause == CAUSE_OUT_OF_MEMORY ? SLURM_OUT_OF_MEMORY
                                          : SLURM_FAILED;
}

enum slurm_state slurm_state_of(const json_t *job)
{
    enum job_state state = JOB_QUEUED;
    const char *text = json_string_of(job, "state");
    if (text != NULL) {
        job_state_from_text(text, &state);
    }
    switch (state) {
    case JOB_PLACED:
    case JOB_RUNNING:
        return is_completing(job) ? SLURM_COMPLETING : SLURM_RUNNING;
    case JOB_SUCCEEDED:
        return SLURM_COMPLETED;
    case JOB_FAILED:
        return failed_state(cause_of(job));
    case JOB_CANCELED:
        return SLURM_CANCELLED;
    case JOB_TIMED_OUT:
        return SLURM_TIMEOUT;
    case JOB_QUEUED:
    case JOB_HELD:
    case JOB_BLOCKED:
    case JOB_STAGING:
    case JOB_STATE_COUNT:
        break;
    }
    return SLURM_PENDING;
}

/* --- a list of states --- */

static bool read_state(const char *word, unsigned *states_read)
{
    if (strcasecmp(word, "all") == 0) {
        *states_read |= SLURM_ALL;
        return true;
    }
    for (unsigned i = 0; i < SLURM_STATE_COUNT; i++) {
        if (strcasecmp(word, states[i].code) == 0 || strcasecmp(word, states[i].text) == 0) {
            *states_read |= 1U << i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcasecmp(word, others[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool slurm_states_read(const char *list, unsigned *ret_states, struct err *err)
{
    autofree char *copy = xstrdup(list);
    char *rest = copy;
    unsigned found = 0;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (!read_state(word, &found)) {
            return err_field(err, ERR_USAGE, "states",
                             "PENDING, RUNNING, COMPLETED, their codes PD, R, CD, or all",
                             "\"%s\" is no state of a job", word);
        }
    }
    *ret_states = found;
    return true;
}

/* --- reasons --- */

/* Of a limit, by the sentence that names it. */
static const char *limit_reason(const char *text)
{
    bool jobs = text != NULL && strstr(text, "running jobs") != NULL;
    bool time = text != NULL && (strstr(text, "GPU hours") != NULL || strstr(text, "GPU minutes") != NULL);
    return jobs ? "QOSMaxJobsPerUserLimit" : time ? "QOSMaxGRESMinutesPerUser" : "QOSMaxGRESPerUser";
}

static const char *wait_reason(const json_t *reason)
{
    enum wait_reason code;
    const char *text = json_string_of(reason, "code");
    if (text == NULL || !wait_reason_from_text(text, &code)) {
        return "Priority"; /* more jobs are before it than the controller looked at */
    }
    switch (code) {
    case WAIT_HELD:
        return "JobHeldUser";
    case WAIT_BLOCKED:
        return "Dependency";
    case WAIT_LIMIT:
        return limit_reason(json_string_of(reason, "text"));
    case WAIT_STAGING:
        return "Staging";
    case WAIT_NODES_BUSY:
    case WAIT_CPU_MEMORY:
    case WAIT_FRAGMENTED:
        return "Resources";
    case WAIT_RESERVED:
    case WAIT_BEHIND:
        return "Priority";
    case WAIT_DRAINED:
    case WAIT_UNAVAILABLE:
    case WAIT_LEAVING:
    case WAIT_HELD_OFF:
    case WAIT_NO_NODES:
        return "ReqNodeNotAvail";
    case WAIT_DUE:
    case WAIT_REASON_COUNT:
        break;
    }
    return "None";
}

static const char *blocked_reason(const json_t *job)
{
    const char *text = json_string_of(job, "reason");
    return text != NULL && strncmp(text, "waits until", strlen("waits until")) == 0 ? "BeginTime"
                                                                                    : "Dependency";
}

static const char *end_reason(const json_t *job)
{
    switch (slurm_state_of(job)) {
    case SLURM_FAILED:
        return cause_of(job) == CAUSE_DEPENDENCY ? "DependencyNeverSatisfied" : "NonZeroExitCode";
    case SLURM_TIMEOUT:
        return "TimeLimit";
    case SLURM_NODE_FAIL:
        return "NodeDown";
    case SLURM_OUT_OF_MEMORY:
        return "OutOfMemory";
    case SLURM_PENDING:
    case SLURM_RUNNING:
    case SLURM_COMPLETING:
    case SLURM_COMPLETED:
    case SLURM_CANCELLED:
    case SLURM_PREEMPTED:
    case SLURM_STATE_COUNT:
        break;
    }
    return "None";
}

const char *slurm_reason_of(const json_t *job, const json_t *queued)
{
    const char *state = json_string_of(job, "state");
    enum job_state known;
    if (state == NULL || !job_state_from_text(state, &known)) {
        return "None";
    }
    if (known == JOB_HELD) {
        return "JobHeldUser";
    }
    if (known == JOB_BLOCKED) {
        return blocked_reason(job);
    }
    if (known == JOB_STAGING) {
        return "Staging";
    }
    if (known == JOB_QUEUED) {
        return queued != NULL ? wait_reason(json_object_get(queued, "reason")) : "None";
    }
    return end_reason(job);
}
