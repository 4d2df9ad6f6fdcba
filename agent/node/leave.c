/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the controller to let the node go, and ends the agent when it has. The controller decides in one step
 * whether the node has work: an order is either before that step, and the node stays to carry it out, or
 * there is none. An idle agent that is refused stays. One that has been told to end asks until its work is
 * gone. An agent without work ends also where the controller does not answer: it would hold its machine for
 * nothing. */
#include "agent/node/leave.h"

#include "agent/node/node_parts.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"

static json_t *leave_body(void *closure)
{
    const struct node *node = closure;
    const struct leave_message message = {
        .node = node->context->config.name,
        .boot_id = node->context->boot_id,
        .agent_id = node->context->agent_id,
        .reason = node->leave.reason,
        .stop = node->leave.stops,
        .forget = node->context->config.ephemeral,
    };
    return leave_message_encode(&message);
}

static bool has_work(const struct node *node)
{
    return node->entries != NULL || stagings_are_wanted(node->context->stagings);
}

static void stay(struct node *node)
{
    node->leave.reason = NULL;
    leave_look(node);
}

static void go(struct node *node)
{
    node->leave.gone = true;
    node->ended(node->closure, node->leave.reason);
}

/* What the controller has said of the node. */
enum verdict {
    VERDICT_GONE,
    VERDICT_WORKS,   /* it has work */
    VERDICT_UNHEARD, /* nothing: the question or its answer is lost */
};

static enum verdict verdict_of(const struct node *node, const struct controller_answer *answer)
{
    struct leave_reply reply;
    if (answer->status == 404) { /* an earlier question was heard, or this controller knows of no work */
        return node->entries == NULL ? VERDICT_GONE : VERDICT_WORKS;
    }
    if (answer->status / 100 != 2 || !leave_reply_decode(json_incref(answer->json), &reply, NULL)) {
        return VERDICT_UNHEARD;
    }
    bool gone = reply.gone;
    leave_reply_finish(&reply);
    return gone ? VERDICT_GONE : VERDICT_WORKS;
}

static bool is_in_vain(struct node *node, const struct controller_answer *answer)
{
    struct leave *leave = &node->leave;
    int64_t now_ms = clock_boot_ms();
    leave->silent_since_ms = leave->silent_since_ms != 0 ? leave->silent_since_ms : now_ms;
    if (node->entries != NULL || now_ms - leave->silent_since_ms < LEAVE_PATIENCE_MS) {
        return false;
    }
    log_warning("leave unanswered", "name=%s status=%d problem=\"%s\"", node->context->config.name,
                answer->status, answer->problem.text);
    return true;
}

static void leave_done(void *closure, const struct controller_answer *answer)
{
    struct node *node = closure;
    struct leave *leave = &node->leave;
    enum verdict verdict = verdict_of(node, answer);
    leave->request = NULL;
    if (verdict == VERDICT_GONE || (verdict == VERDICT_UNHEARD && is_in_vain(node, answer))) {
        go(node);
        return;
    }
    leave->silent_since_ms = verdict == VERDICT_UNHEARD ? leave->silent_since_ms : 0;
    if (verdict == VERDICT_WORKS && !leave->stops) {
        stay(node);
    } else {
        loop_arm(node->context->loop, &leave->again, clock_boot_ms() + LEAVE_AGAIN_MS);
    }
    if (leave->register_due) {
        leave->register_due = false;
        exchange_register(node);
    }
}

static void ask(struct node *node)
{
    struct leave *leave = &node->leave;
    loop_disarm(node->context->loop, &leave->again);
    if (leave->request == NULL && !leave->gone) {
        leave->register_due = exchange_cancel_register(node) || leave->register_due;
        leave->request = controller_send(node->context->controller, &(struct controller_call){
                                                                        .path = "/v1/agent/leave",
                                                                        .body = leave_body,
                                                                        .timeout_ms = REQUEST_TIMEOUT_MS,
                                                                        .done = leave_done,
                                                                        .closure = node,
                                                                    });
    }
}

static void begin(struct node *node, const char *reason)
{
    struct leave *leave = &node->leave;
    log_info("node leaves", "name=%s reason=\"%s\"", node->context->config.name, reason);
    leave->reason = reason;
    ask(node);
}

void leave_begin(struct node *node, const char *reason)
{
    if (!node->leave.stops) {
        node->leave.stops = true;
        controller_cancel(node->leave.request); /* it asks for less */
        node->leave.request = NULL;
        begin(node, reason);
    }
}

void leave_look(struct node *node)
{
    struct leave *leave = &node->leave;
    int64_t idle_ms = node->context->config.idle_exit_ms;
    if (leave->stops && node->entries == NULL) {
        ask(node);
    } else if (has_work(node) || leave->reason != NULL) {
        loop_disarm(node->context->loop, &leave->idle);
    } else if (idle_ms > 0 && !leave->idle.on) {
        loop_arm(node->context->loop, &leave->idle, clock_boot_ms() + idle_ms);
    }
}

bool leave_holds_register(struct node *node)
{
    struct leave *leave = &node->leave;
    leave->register_due = leave->request != NULL || leave->gone;
    return leave->register_due;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void idle_due(void *closure)
{
    begin(closure, "idle");
}

static void expiry_due(void *closure)
{
    leave_begin(closure, "expired");
}

static void again_due(void *closure)
{
    ask(closure);
}

void leave_init(struct node *node)
{
    struct leave *leave = &node->leave;
    const struct config *config = &node->context->config;
    leave->idle = (struct loop_timer){.due = idle_due, .closure = node};
    leave->expiry = (struct loop_timer){.due = expiry_due, .closure = node};
    leave->again = (struct loop_timer){.due = again_due, .closure = node};
    if (config->ephemeral && config->expires_at_ms != 0) {
        int64_t left_ms = config->expires_at_ms - clock_wall_ms();
        loop_arm(node->context->loop, &leave->expiry, clock_boot_ms() + left_ms);
    }
}

void leave_finish(struct node *node)
{
    controller_cancel(node->leave.request);
    loop_disarm(node->context->loop, &node->leave.idle);
    loop_disarm(node->context->loop, &node->leave.expiry);
    loop_disarm(node->context->loop, &node->leave.again);
}
