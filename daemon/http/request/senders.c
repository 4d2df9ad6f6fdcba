/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the HTTP thread's time among those who ask: users, the ranks of an attempt, and for requests
 * without a valid token the addresses. While several ask, each gets SENDER_TURN_US of a turn of the loop,
 * and what is too much waits in the sender's own line. What counts is the measured time, so an expensive
 * route needs no weight. Of the writer and the helper threads a sender has as many requests under way as
 * take SENDER_WORK_US, at least one. Nothing rests while somebody is in line: a sender that is alone, or
 * whose rivals want little, is as fast as without shares. What it takes while it is alone it owes nobody. A
 * sender of too many requests gets longer answer times, and nobody else does. Only a request that has been in
 * line too long is refused; so refusals are few. An address without a valid token has, while others ask, one
 * request in SENDER_STRANGER_MS: more of them are a flood or a search for a token.
 */
#include "daemon/http/request/senders.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/request/peers.h"
#include "daemon/http/request/request.h"
#include "daemon/http/base/state.h"
#include "proto/base/log.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define NAME_BYTES (LIMIT_NAME_BYTES + 16)

struct sender {
    char name[NAME_BYTES];
    size_t requests;            /* open ones */
    struct request *line;       /* those that wait, the oldest first */
    int64_t credit_us;          /* the rest of its share; below 0: owed to later turns */
    int64_t expected_us;        /* the time that its next request takes, on all threads */
    int64_t work_us;            /* expected of those that are under way */
    uint64_t turn;              /* in which it was given credit last */
    bool stranger;              /* an address */
    int64_t begun_ms;           /* when its last request was let go on */
    bool told;                  /* that its requests are refused */
    struct sender *prev, *next; /* those without requests, the one that has been so for the longest first */
    struct sender *lined_prev, *lined_next; /* those with a line */
    UT_hash_handle hh;
};

struct senders {
    struct sender *by_name;
    struct sender *quiet; /* without requests */
    struct sender *lined;
    const struct sender *last; /* that asked */
    int64_t last_ms, other_ms; /* when it did, and when another one did; 0: none has */
    size_t quiet_count, request_count;
    uint64_t turn, refused;
    int64_t wait_ms;
};

struct senders *senders_create(int64_t wait_ms)
{
    struct senders *senders = xzalloc(sizeof *senders);
    senders->wait_ms = wait_ms;
    return senders;
}

static void forget(struct senders *senders, struct sender *sender)
{
    assert(sender->requests == 0 && sender->line == NULL);
    senders->last = senders->last != sender ? senders->last : NULL;
    HASH_DEL(senders->by_name, sender);
    DL_DELETE(senders->quiet, sender);
    senders->quiet_count--;
    free(sender);
}

void senders_destroy(struct senders *senders)
{
    if (senders == NULL) {
        return;
    }
    while (senders->quiet != NULL) {
        forget(senders, senders->quiet);
    }
    assert(senders->by_name == NULL);
    free(senders);
}

/* --- who asks ------------------------------------------------------------------------------------------- */

static void name_of(const struct request *request, char out[NAME_BYTES])
{
    if (request->ranks_attempt_id != 0) {
        snprintf(out, NAME_BYTES, "attempt %" PRIu64, request->ranks_attempt_id);
    } else if (request->who != NULL) {
        stpcpy(stpcpy(out, "user "), identity_owner(request->who));
    } else {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        peers_name(info->client_addr, stpcpy(out, "address "));
    }
}

static struct sender *find(struct senders *senders, const char *name, bool stranger)
{
    struct sender *sender;
    HASH_FIND_STR(senders->by_name, name, sender);
    if (sender == NULL) {
        sender = xzalloc(sizeof *sender);
        strcpy(sender->name, name);
        sender->stranger = stranger;
        sender->expected_us = SENDER_TURN_US; /* until it is known; else all of a first burst would begin */
        HASH_ADD_STR(senders->by_name, name, sender);
    } else if (sender->requests == 0) {
        DL_DELETE(senders->quiet, sender);
        senders->quiet_count--;
    }
    sender->requests++;
    return sender;
}

/* Beyond their number the one that has been quiet for the longest is forgotten, with what it owes. */
static void be_quiet(struct senders *senders, struct sender *sender)
{
    DL_APPEND(senders->quiet, sender);
    senders->quiet_count++;
    if (senders->quiet_count > LIMIT_SENDERS_KEPT) {
        forget(senders, senders->quiet);
    }
}

static void note_asked(struct senders *senders, const struct sender *sender, int64_t now_ms)
{
    if (sender != senders->last) {
        senders->other_ms = senders->last_ms;
        senders->last = sender;
    }
    senders->last_ms = now_ms;
}

/* --- shares --------------------------------------------------------------------------------------------- */

static void give_credit(const struct senders *senders, struct sender *sender)
{
    uint64_t turns = senders->turn - sender->turn;
    sender->turn = senders->turn;
    if (sender->credit_us + (int64_t)turns * SENDER_TURN_US < SENDER_TURN_US) {
        sender->credit_us += (int64_t)turns * SENDER_TURN_US;
    } else {
        sender->credit_us = SENDER_TURN_US;
    }
}

/* What is paid at first is what the last requests have cost. */
static void begin(struct sender *sender, struct request *request)
{
    sender->begun_ms = request->server->now_ms;
    request->share = (struct request_share){.under_way = true, .paid_us = sender->expected_us};
    sender->credit_us -= request->share.paid_us;
    sender->work_us += request->share.paid_us;
}

static void end(struct request *request)
{
    struct request_share *share = &request->share;
    struct sender *sender = request->sender;
    if (!share->under_way) {
        return;
    }
    share->under_way = false;
    sender->work_us -= share->paid_us;
    sender->credit_us += share->paid_us - share->cost_us;
    sender->expected_us = (3 * sender->expected_us + share->cost_us) / 4;
}

void senders_hand_on(struct request *request)
{
    request->share.handed_on = true;
}

void senders_charge(struct request *request, int64_t took_us)
{
    request->share.cost_us += took_us + SENDER_REQUEST_US;
    if (!request->share.handed_on) {
        end(request);
    }
}

void senders_take_back(struct request *request, int64_t took_us)
{
    request->share.handed_on = false;
    request->share.cost_us += took_us;
    end(request);
}

/* When it may begin another request, as far as that is not a matter of credit; INT64_MAX: when one has ended.
 */
static int64_t ready_ms(const struct sender *sender)
{
    if (sender->work_us >= SENDER_WORK_US) {
        return INT64_MAX;
    }
    return sender->stranger ? sender->begun_ms + SENDER_STRANGER_MS : 0;
}

static bool may_begin(const struct sender *sender, int64_t now_ms)
{
    return sender->credit_us > 0 && ready_ms(sender) <= now_ms;
}

/* Whether anybody but the one that asked last has asked lately. */
static bool others_ask(const struct senders *senders)
{
    return senders->other_ms != 0 && senders->last_ms - senders->other_ms < SENDER_RECENT_MS;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

static void enter_line(struct senders *senders, struct sender *sender, struct request *request)
{
    if (sender->line == NULL) {
        DL_APPEND2(senders->lined, sender, lined_prev, lined_next);
    }
    DL_APPEND2(sender->line, request, share.prev, share.next);
    senders->request_count++;
    request->share.in_line = true;
    request->share.lined_ms = request->server->now_ms;
    request_suspend(request);
}

static void leave_line(struct senders *senders, struct sender *sender, struct request *request)
{
    DL_DELETE2(sender->line, request, share.prev, share.next);
    senders->request_count--;
    request->share.in_line = false;
    if (sender->line == NULL) {
        DL_DELETE2(senders->lined, sender, lined_prev, lined_next);
    }
}

bool senders_admit(struct senders *senders, struct request *request)
{
    bool node = request->who != NULL && identity_role(request->who) == ROLE_NODE;
    if (senders->wait_ms == 0 || node) {
        return true;
    }
    char name[NAME_BYTES];
    name_of(request, name);
    struct sender *sender = request->sender =
        find(senders, name, request->ranks_attempt_id == 0 && request->who == NULL);
    note_asked(senders, sender, request->server->now_ms);
    give_credit(senders, sender);
    if (!others_ask(senders)) {
        sender->credit_us = SENDER_TURN_US;
    }
    if (sender->line == NULL && (may_begin(sender, request->server->now_ms) || !others_ask(senders))) {
        begin(sender, request);
        return true;
    }
    enter_line(senders, sender, request);
    return false;
}

void senders_leave(struct senders *senders, struct request *request)
{
    struct sender *sender = request->sender;
    if (sender == NULL) {
        return;
    }
    if (request->share.in_line) {
        leave_line(senders, sender, request);
    }
    end(request);
    request->sender = NULL;
    sender->requests--;
    if (sender->requests == 0) {
        be_quiet(senders, sender);
    }
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void refuse(struct senders *senders, struct sender *sender, struct request *request)
{
    struct err err;
    if (!sender->told) {
        log_warning("requests refuse", "sender=\"%s\" in_line=%zu", sender->name, sender->requests);
        sender->told = true;
    }
    senders->refused++;
    err_set(&err, ERR_TOO_MANY, "%s sends more than its share of requests: this one waited for %lld s",
            sender->name, (long long)(senders->wait_ms / 1000));
    err_hint(&err, "send fewer requests at once; gpuctld --request-wait is the limit");
    request_fail_for(request, &err, senders->wait_ms);
}

/* Those at the head of the line that have been there too long. A request that was refused already, for
 * another reason, goes on at its turn. */
static void refuse_late(struct senders *senders, struct sender *sender, int64_t now_ms)
{
    struct request *request = sender->line;
    while (request != NULL && now_ms - request->share.lined_ms >= senders->wait_ms) {
        leave_line(senders, sender, request);
        if (request->response == NULL) {
            refuse(senders, sender, request);
        }
        request_resume(request);
        request = sender->line;
    }
    sender->told = sender->told && sender->line != NULL;
}

static void resume_first(struct senders *senders, struct sender *sender)
{
    struct request *request = sender->line;
    leave_line(senders, sender, request);
    begin(sender, request);
    request_resume(request);
}

/* The turns after which one of those in line has credit again. */
static uint64_t turns_ahead(const struct senders *senders, int64_t now_ms)
{
    int64_t most_us = INT64_MIN;
    for (const struct sender *sender = senders->lined; sender != NULL; sender = sender->lined_next) {
        bool better = ready_ms(sender) <= now_ms && sender->credit_us > most_us;
        most_us = better ? sender->credit_us : most_us;
    }
    return most_us > 0 || most_us == INT64_MIN ? 1 : (uint64_t)-most_us / SENDER_TURN_US + 1;
}

int64_t senders_due_ms(const struct senders *senders, int64_t now_ms)
{
    int64_t due_ms = INT64_MAX;
    for (const struct sender *sender = senders->lined; sender != NULL; sender = sender->lined_next) {
        int64_t refuse_ms = sender->line->share.lined_ms + senders->wait_ms;
        int64_t ready = ready_ms(sender);
        due_ms = refuse_ms < due_ms ? refuse_ms : due_ms;
        due_ms = ready < due_ms ? ready : due_ms;
    }
    return due_ms > now_ms ? due_ms : now_ms;
}

void senders_turn(struct senders *senders, int64_t now_ms, bool idle)
{
    struct sender *next;
    senders->turn += idle ? turns_ahead(senders, now_ms) : 1;
    for (struct sender *sender = senders->lined; sender != NULL; sender = next) {
        next = sender->lined_next;
        give_credit(senders, sender);
        while (sender->line != NULL && may_begin(sender, now_ms)) {
            resume_first(senders, sender);
        }
        refuse_late(senders, sender, now_ms);
    }
}

size_t senders_lined(const struct senders *senders)
{
    return senders->request_count;
}

uint64_t senders_refused(const struct senders *senders)
{
    return senders->refused;
}
