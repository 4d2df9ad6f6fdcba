/* SPDX-License-Identifier: Apache-2.0 */
/* Processes reports of nodes. A report of any attempt but the current one is refused and changes nothing; so
 * does a repeated report. The rank that failed first is named. A function whose ranks all exited with 0
 * succeeds only with a value of each. attempt.c decides about the gang. */
#include "daemon/core/inputs/report.h"

#include <signal.h>
#include <string.h>

#include "daemon/core/fleet/node.h"
#include "daemon/core/inputs/result.h"
#include "daemon/core/lifecycle/attempt.h"
#include "daemon/core/lifecycle/member.h"
#include "daemon/core/model/record.h"
#include "daemon/core/model/state.h"
#include "daemon/core/lifecycle/timing.h"
#include "proto/errors.h"
#include "proto/limits_agent.h"

/* --- the attempt of a report ---------------------------------------------------------------------------- */

static bool fenced(const struct report_message *report, struct err *err)
{
    return err_field(err, ERR_FENCED, "epoch", "kill what is left of it",
                     "attempt %llu is not current on node %.64s", (unsigned long long)report->attempt_id,
                     report->node);
}

/* Checks a report of the newest attempt after it has ended: its nodes only repeat known reports. */
static bool check_repeated(const struct attempt *attempt, const struct node *node,
                           const struct report_message *report, struct err *err)
{
    for (size_t i = 0; i < attempt->member_count; i++) {
        const struct member *member = attempt->members[i];
        if (member->node == node && member->state != MEMBER_LOST) {
            return true;
        }
    }
    return fenced(report, err);
}

/* *ret_member NULL: a repeated report. */
static bool find_member(const struct core *core, const struct report_message *report,
                        struct member **ret_member, struct err *err)
{
    *ret_member = NULL;
    const struct node *node = node_find(core, report->node);
    if (!node_speaks(node, report->boot_id, report->agent_id)) {
        return err_field(err, ERR_NOT_FOUND, "node", "register again", "node %.64s is not registered",
                         report->node);
    }
    struct attempt *attempt = attempt_find(core, report->attempt_id);
    if (attempt == NULL) {
        return fenced(report, err);
    }
    if (!attempt_is_live(attempt)) {
        return check_repeated(attempt, node, report, err);
    }
    struct member *member = member_on(node, report->attempt_id);
    if (member == NULL || member->state == MEMBER_LOST) {
        return fenced(report, err);
    }
    *ret_member = member;
    return true;
}

static bool check_ranks(const struct member *member, const struct report_message *report, struct err *err)
{
    int64_t first = member->first_rank, last = first + member->local_ranks - 1;
    for (size_t i = 0; i < report->rank_count; i++) {
        int64_t rank = report->ranks[i].rank;
        if (rank < first || rank > last) {
            return err_field(err, ERR_FIELD, "ranks", "report the ranks of this node",
                             "rank %lld is not one of %lld..%lld", (long long)rank, (long long)first,
                             (long long)last);
        }
    }
    return true;
}

/* --- faults --------------------------------------------------------------------------------------------- */

static const char *signal_name(int64_t number)
{
    static const char *const names[] = {
        [SIGHUP] = "SIGHUP",   [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT", [SIGILL] = "SIGILL",
        [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT", [SIGBUS] = "SIGBUS",   [SIGFPE] = "SIGFPE",
        [SIGKILL] = "SIGKILL", [SIGUSR1] = "SIGUSR1", [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
        [SIGPIPE] = "SIGPIPE", [SIGALRM] = "SIGALRM", [SIGTERM] = "SIGTERM", [SIGXCPU] = "SIGXCPU",
        [SIGXFSZ] = "SIGXFSZ", [SIGSYS] = "SIGSYS",
    };
    bool known = number > 0 && number < (int64_t)(sizeof names / sizeof names[0]) && names[number] != NULL;
    return known ? names[number] : "no name";
}

/* The first rank that ended in a failure which we did not cause; NULL: none. */
static const struct rank_exit *first_failed(const struct report_message *report)
{
    const struct rank_exit *first = NULL;
    for (size_t i = 0; i < report->rank_count; i++) {
        const struct rank_exit *rank = &report->ranks[i];
        if (rank->code != 0 && !rank->by_us && (first == NULL || rank->at_ms < first->at_ms)) {
            first = rank;
        }
    }
    return first;
}

/* The length of the first line of a rank's message, limited to what fits into a sentence. */
static int said_length(const char *said)
{
    size_t length = said != NULL ? strcspn(said, "\r\n") : 0;
    return (int)(length < LIMIT_SAID_BYTES ? length : LIMIT_SAID_BYTES);
}

static const char *exit_sentence(struct core *core, const struct member *member, const struct rank_exit *rank)
{
    if (rank->signal != 0) {
        return record_text(core, "rank %lld on node %s was killed by signal %lld (%s)", (long long)rank->rank,
                           member->node->name, (long long)rank->signal, signal_name(rank->signal));
    }
    return record_text(core, "rank %lld on node %s exited with %lld", (long long)rank->rank,
                       member->node->name, (long long)rank->code);
}

/* With the limit and what was used, where the node knows them. */
static const char *memory_sentence(struct core *core, const char *sentence, const char *text)
{
    const char *found = text != NULL ? strstr(text, SAID_OUT_OF_MEMORY) : NULL;
    return record_text(core, "%s%.200s", sentence, found != NULL ? found : SAID_OUT_OF_MEMORY);
}

static const char *rank_sentence(struct core *core, const struct member *member, const struct rank_exit *rank,
                                 enum cause cause, const struct report_message *report)
{
    const char *sentence = exit_sentence(core, member, rank);
    if (cause == CAUSE_OUT_OF_MEMORY) {
        sentence = memory_sentence(core, sentence, report->text);
    }
    int length = said_length(report->said);
    return length > 0 ? record_text(core, "%s: %.*s", sentence, length, report->said) : sentence;
}

/* The cause that a node may report. An expired lease is NODE_LOST. A node cannot report the controller's own
 * causes: if it stopped ranks without an order, the infrastructure failed. */
static enum cause believed(enum cause cause)
{
    switch (cause) {
    case CAUSE_RANK_FAILED:
    case CAUSE_OUT_OF_MEMORY:
    case CAUSE_EXEC_FAILED:
    case CAUSE_RESULT_MISSING:
    case CAUSE_DECLINED:
    case CAUSE_PORT_TAKEN:
    case CAUSE_NODE_LOST:
        return cause;
    case CAUSE_NONE:
    case CAUSE_CANCELED:
    case CAUSE_TIME_LIMIT:
    case CAUSE_PREPARE_EXPIRED:
    case CAUSE_SHIM_LOST:
    case CAUSE_STAGE_FAILED:
    case CAUSE_PREEMPTED:
    case CAUSE_DEPENDENCY:
    case CAUSE_TASK_FAILED:
        return CAUSE_SHIM_LOST;
    case CAUSE_COUNT:
        break;
    }
    abort();
}

static struct fault fault_of(struct core *core, const struct member *member,
                             const struct report_message *report, enum cause cause)
{
    const struct rank_exit *rank = first_failed(report);
    bool witnessed = cause == report->cause;
    struct fault fault = {.cause = cause, .member = member, .witnessed = witnessed, .rank = -1, .code = 1};
    if (cause == CAUSE_EXEC_FAILED) {
        fault.code = 127;
    }
    if (rank != NULL) {
        fault.rank = rank->rank;
        fault.code = rank->code;
    }
    if ((cause == CAUSE_RANK_FAILED || cause == CAUSE_OUT_OF_MEMORY) && rank != NULL) {
        fault.text = rank_sentence(core, member, rank, cause, report);
    } else if (cause == CAUSE_NODE_LOST) {
        fault.text = record_text(core, "the lease of node %s ended", member->node->name);
    } else if (report->text != NULL) {
        fault.text = record_text(core, "%s on node %s: %.300s", cause_sentence(cause), member->node->name,
                                 report->text);
    } else {
        fault.text = record_text(core, "%s on node %s", cause_sentence(cause), member->node->name);
    }
    return fault;
}

/* All ranks exited with 0, and this one has returned no value. */
static struct fault fault_of_missing(struct core *core, const struct member *member,
                                     const struct report_message *report, int64_t rank)
{
    const char *why = "; a call of sys.exit or os._exit in the function does this";
    if (report->text != NULL) {
        why = record_text(core, ": %.300s", report->text);
    }
    return (struct fault){.cause = CAUSE_RESULT_MISSING,
                          .member = member,
                          .rank = rank,
                          .code = 1,
                          .text = record_text(core, "rank %lld on node %s ended without a result%s",
                                              (long long)rank, member->node->name, why)};
}

/* The cause in an exit report. CAUSE_NONE: every rank of the node ran, after the start, and exited with 0. A
 * node does not decide whether results are missing, but only explains why. */
static enum cause exit_cause(const struct member *member, const struct report_message *report)
{
    if (report->cause != CAUSE_NONE && report->cause != CAUSE_RESULT_MISSING) {
        return believed(report->cause);
    }
    if (!attempt_has_started(member->attempt)) {
        return CAUSE_SHIM_LOST;
    }
    if (first_failed(report) != NULL) {
        return CAUSE_RANK_FAILED;
    }
    bool complete = report->rank_count == (size_t)member->local_ranks;
    for (size_t i = 0; i < report->rank_count; i++) {
        complete = complete && report->ranks[i].code == 0;
    }
    return complete ? CAUSE_NONE : CAUSE_SHIM_LOST;
}

/* --- the kinds ------------------------------------------------------------------------------------------ */

static bool needs_port(const struct attempt *attempt, const struct member *member)
{
    return member->node_rank == 0 && attempt->member_count > 1;
}

static void keep_master(struct core *core, struct attempt *attempt, const struct report_message *report)
{
    if (report->address != NULL) {
        row_free(&attempt->master_address);
        attempt->master_address = xstrdup(report->address);
    }
    attempt->master_port = report->master_port;
    record_attempt(core, attempt);
}

static bool take_prepared(struct core *core, struct member *member, const struct report_message *report,
                          struct err *err)
{
    struct attempt *attempt = member->attempt;
    if (needs_port(attempt, member) && (report->address == NULL || report->master_port == 0)) {
        return err_field(err, ERR_FIELD, "master_port",
                         "node rank 0 reports its address and the port that it holds",
                         "node rank 0 of a gang was prepared without address and port");
    }
    if (!member_fire(core, member, MEMBER_EVENT_PREPARE)) {
        return true;
    }
    core->change_set.lazy = true;
    timing_take(core, member, report);
    member->port = report->master_port;
    if (needs_port(attempt, member)) {
        keep_master(core, attempt, report);
    }
    attempt_note_prepared(core, attempt);
    return true;
}

static void note_running(struct core *core, struct attempt *attempt, const struct report_message *report)
{
    if (attempt->member_count == 1 && report->master_port != 0) {
        keep_master(core, attempt, report);
    }
    attempt_note_running(core, attempt);
}

static bool take_running(struct core *core, struct member *member, const struct report_message *report,
                         struct err *err)
{
    struct attempt *attempt = member->attempt;
    if (!attempt_has_started(attempt)) {
        return fenced(report, err);
    }
    if (!member_fire(core, member, MEMBER_EVENT_RUN)) {
        return true;
    }
    core->change_set.lazy = true;
    timing_take(core, member, report);
    note_running(core, attempt, report);
    return true;
}

static void take_declined(struct core *core, struct member *member, const struct report_message *report)
{
    if (!member_fire(core, member, MEMBER_EVENT_DECLINE)) {
        return;
    }
    const struct fault fault = fault_of(core, member, report, CAUSE_DECLINED);
    attempt_stop(core, member->attempt, &fault);
    attempt_settle(core, member->attempt);
}

static void take_failed(struct core *core, struct member *member, const struct report_message *report)
{
    if (!member_is_up(member)) {
        return;
    }
    enum cause cause = report->cause != CAUSE_NONE ? believed(report->cause) : CAUSE_RANK_FAILED;
    struct fault fault = fault_of(core, member, report, cause);
    fault.stops_itself = member->attempt->job->keep_ms == 0; /* else its shim waits for a stop */
    if (!attempt_keep(core, member->attempt, &fault)) {
        attempt_stop(core, member->attempt, &fault);
    }
}

static void keep_ranks(struct core *core, struct attempt *attempt, const struct report_message *report)
{
    for (size_t i = 0; i < report->rank_count; i++) {
        const struct rank_exit *rank = &report->ranks[i];
        record_rank(core, attempt, rank);
        if (!rank->by_us && rank->code > attempt->worst_code) {
            attempt->worst_code = rank->code;
        }
    }
}

/* Keeps a node's remark on an attempt that did not fail. It is only in memory: no decision depends on it. */
static void keep_note(struct attempt *attempt, const char *said)
{
    if (said != NULL && attempt->note == NULL) {
        attempt->note = xstrndup(said, (size_t)said_length(said));
    }
}

static void keep_checkpoint(struct core *core, struct attempt *attempt, const struct report_message *report)
{
    if (report->checkpoint_ms > attempt->checkpoint_ms) {
        attempt->checkpoint_ms = report->checkpoint_ms;
        record_attempt(core, attempt);
    }
}

/* Of ranks that ran for a moment only, the exit is the first report. */
static void keep_use(struct member *member, const struct gpu_use *use)
{
    member->use = (struct member_use){
        .measured_ms = use->measured_ms, .idle_ms = use->idle_ms, .energy_mj = use->energy_mj};
}

static void take_first_exit(struct core *core, struct member *member, const struct report_message *report)
{
    struct attempt *attempt = member->attempt;
    if (report->rank_count > 0 && attempt_has_started(attempt) &&
        member_fire(core, member, MEMBER_EVENT_RUN)) {
        note_running(core, attempt, report);
    }
    enum cause cause = exit_cause(member, report);
    int64_t missing = result_missing(member, report);
    member_fire(core, member, MEMBER_EVENT_EXIT);
    if (cause != CAUSE_NONE || missing >= 0) {
        const struct fault fault = cause != CAUSE_NONE ? fault_of(core, member, report, cause)
                                                       : fault_of_missing(core, member, report, missing);
        attempt_stop(core, attempt, &fault);
    } else {
        keep_note(attempt, report->said);
    }
    keep_ranks(core, attempt, report);
    keep_checkpoint(core, attempt, report);
    timing_take(core, member, report);
    keep_use(member, &report->use);
    result_keep(core, member, report);
}

static void take_exited(struct core *core, struct member *member, const struct report_message *report)
{
    if (member_is_up(member)) {
        take_first_exit(core, member, report);
    }
    if (report->flushed) {
        member_fire(core, member, MEMBER_EVENT_FLUSH);
    }
    attempt_settle(core, member->attempt);
}

bool report_take(struct core *core, const struct input *input, struct err *err)
{
    const struct report_message *report = input->report;
    struct member *member;
    if (!find_member(core, report, &member, err)) {
        return false;
    }
    if (member == NULL) {
        return true;
    }
    if (!check_ranks(member, report, err) || !result_check(member, report, err)) {
        return false;
    }
    node_take_faults(core, member->node, &report->faults); /* before its devices are given to another job */
    switch (report->kind) {
    case REPORT_PREPARED:
        return take_prepared(core, member, report, err);
    case REPORT_RUNNING:
        return take_running(core, member, report, err);
    case REPORT_DECLINED:
        take_declined(core, member, report);
        return true;
    case REPORT_FAILED:
        take_failed(core, member, report);
        return true;
    case REPORT_EXITED:
        take_exited(core, member, report);
        return true;
    case REPORT_KIND_COUNT:
        break;
    }
    abort();
}
