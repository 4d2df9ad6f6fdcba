/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's end of the conversation with the shim of an attempt (agent/shim/shimwire.h). Each message is
 * understood, or refused with a line in the log. The agent notices the death of a shim at any point of the
 * conversation. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/base/address.h"
#include "agent/attempt/attempt.h"
#include "agent/base/stage_file.h"
#include "agent/common/fd_message.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

/* --- what is said --------------------------------------------------------------------------------------- */

/* Until the ranks run, the agent leaves the CPU cores to them. A message wakes the shim on the agent's core,
 * because the kernel expects its sender to sleep soon: the agent lets the shim run before it goes on. */
static void hurry(struct attempt *attempt)
{
    attempt->context->hurry_ms = clock_boot_ms() + START_HURRY_MS;
    sched_yield();
}

void shim_client_prepare(struct attempt *attempt)
{
    shim_process_tell(&attempt->shim, "prepare");
    hurry(attempt);
}

/* All ranks are on this host, so they meet on its loopback interface. */
static const char *order_to_run(const struct attempt *attempt)
{
    return attempt->holds_port ? "run 127.0.0.1 lo" : "run - -";
}

void shim_client_run(struct attempt *attempt)
{
    shim_process_tell(&attempt->shim, "%s", order_to_run(attempt));
    hurry(attempt);
}

static char *first_orders(const struct attempt *attempt)
{
    struct text orders = {0};
    text_printf(&orders, "assign %s\n", attempt->run);
    if (attempt->term_ms > 0) {
        text_printf(&orders, "lease %lld %lld\n", (long long)attempt->term_ms, (long long)attempt->kill_ms);
    }
    text_append(&orders, attempt->order.phase == ORDER_RUN ? order_to_run(attempt) : "prepare");
    return text_take(&orders);
}

/* With the secrets, if there are any: a shim has both or neither. */
bool shim_client_assign(struct attempt *attempt, struct err *err)
{
    autofree char *orders = first_orders(attempt);
    autoclose int secrets = attempt->secrets.count > 0 ? attempt_secrets_give(&attempt->secrets, err) : -1;
    if (attempt->secrets.count > 0 && secrets < 0) {
        return false;
    }
    if (!fd_message_send(attempt->shim.fd, orders, strlen(orders), &secrets, secrets >= 0 ? 1 : 0,
                         MSG_DONTWAIT)) {
        return err_set(err, ERR_IO, "the shim does not listen");
    }
    hurry(attempt);
    return true;
}

/* Where the file cannot be written, the shim uses the master's address. */
static void write_addresses(const struct attempt *attempt)
{
    const char *list = attempt->order.addresses;
    autofree char *path = xprintf("%s/" SHIM_ADDRESSES_FILE, attempt->run);
    if (list != NULL && !stage_file_put(path, list, strlen(list), NULL)) {
        log_warning("addresses unwritten", "attempt_id=%llu path=%s", (unsigned long long)attempt->attempt_id,
                    path);
    }
}

void shim_client_start(struct attempt *attempt)
{
    char interface[INTERFACE_BYTES] = "-";
    const struct order *order = &attempt->order;
    attempt->told_us = attempt->context->heard_us;
    if (order->master_address == NULL) {
        shim_process_tell(&attempt->shim, "start - - -");
        hurry(attempt);
        return;
    }
    write_addresses(attempt);
    if (!address_interface(order->master_address, interface)) {
        log_warning("interface unknown", "attempt_id=%llu master=%s", (unsigned long long)attempt->attempt_id,
                    order->master_address);
    }
    shim_process_tell(&attempt->shim, "start %s %lld %s", order->master_address,
                      (long long)order->master_port, interface);
    hurry(attempt);
}

/* --- what is heard -------------------------------------------------------------------------------------- */

static void hear(struct attempt *attempt, enum reconciler_news news)
{
    attempt->context->heard(attempt->context->closure, attempt->attempt_id, news);
}

/* Sets a moment to now, unless it is set already. */
static void note(const struct attempt *attempt, int64_t *moment_us)
{
    if (*moment_us == 0 && !attempt->adopted) {
        *moment_us = clock_boot_us();
    }
}

static bool hear_prepared(struct attempt *attempt, char *rest)
{
    if (!record_numbers(&rest, &attempt->port, 1)) {
        return false;
    }
    note(attempt, &attempt->prepared_us);
    hear(attempt, NEWS_PREPARED);
    return true;
}

static bool hear_declined(struct attempt *attempt, char *rest)
{
    attempt_decline(attempt, rest != NULL ? rest : "");
    return true;
}

/* How a Python was started. Where there were no workers for it, the agent itself knows why. */
static char *how_started(const struct attempt *attempt, const char *said)
{
    if (said != NULL && *said != '\0') {
        return xstrdup(said);
    }
    if (!attempt->python) {
        return NULL;
    }
    return attempt->cold_why != NULL ? xprintf("cold %s", attempt->cold_why) : xstrdup("cold");
}

static void hear_start(struct attempt *attempt, const char *said)
{
    static const char stale[] = "stale ";
    free(attempt->how);
    attempt->how = how_started(attempt, said);
    if (attempt->how == NULL) {
        return;
    }
    log_info("attempt started", "attempt_id=%llu start=\"%s\"", (unsigned long long)attempt->attempt_id,
             attempt->how);
    if (strncmp(attempt->how, stale, strlen(stale)) == 0) {
        warm_renew(attempt->context->warm, attempt->warm_kind);
    }
}

static void say_running(void *closure)
{
    hear(closure, NEWS_RUNNING);
}

/* The exit of a short job makes this report unnecessary. An adopted attempt must not wait: its phase has to
 * be known before its orders come. */
static void say_running_soon(struct attempt *attempt)
{
    if (attempt->adopted) {
        say_running(attempt);
        return;
    }
    loop_set(attempt->context->loop, &attempt->tell_running, say_running, attempt);
    loop_arm(attempt->context->loop, &attempt->tell_running, clock_boot_ms() + RUNNING_HOLD_MS);
}

/* Reports are sent in the order of what happened. */
static void say_running_now(struct attempt *attempt)
{
    if (attempt->tell_running.on) {
        loop_disarm(attempt->context->loop, &attempt->tell_running);
        say_running(attempt);
    }
}

static bool hear_running(struct attempt *attempt, char *rest)
{
    int64_t numbers[2];
    if (!record_numbers(&rest, numbers, 2)) {
        return false;
    }
    note(attempt, &attempt->running_us);
    attempt->running_ms = numbers[0];
    attempt->context->hurry_ms = 0;
    attempt->port = numbers[1];
    sampler_begin(attempt);
    hear_start(attempt, rest);
    say_running_soon(attempt);
    return true;
}

static bool hear_pids(struct attempt *attempt, char *rest)
{
    int64_t pid;
    attempt->pid_count = 0;
    while (attempt->pid_count < LIMIT_SAMPLE_RANKS && record_numbers(&rest, &pid, 1)) {
        attempt->pids[attempt->pid_count++] = (pid_t)pid;
    }
    return attempt->pid_count > 0;
}

static bool hear_failed(struct attempt *attempt, char *rest)
{
    int64_t numbers[4];
    enum cause cause;
    char *word;
    if (!record_numbers(&rest, numbers, 4) || (word = strsep(&rest, " ")) == NULL ||
        !cause_from_text(word, &cause)) {
        return false;
    }
    attempt->failed =
        (struct rank_exit){.rank = numbers[0], .code = numbers[1], .signal = numbers[2], .at_ms = numbers[3]};
    attempt->failed_cause = cause;
    free(attempt->failed_text);
    attempt->failed_text = rest != NULL ? xstrdup(rest) : NULL;
    say_running_now(attempt);
    hear(attempt, NEWS_FAILED);
    return true;
}

static bool hear_output(struct attempt *attempt, char *rest)
{
    output_grown(attempt->output);
    return true;
}

static bool hear_checkpoint(struct attempt *attempt, char *rest)
{
    int64_t step;
    if (!record_numbers(&rest, &step, 1)) {
        return false;
    }
    checkpoint_acknowledged(attempt->checkpoint, step);
    return true;
}

static bool hear_exited(struct attempt *attempt, char *rest)
{
    struct err err;
    if (attempt->phase == PHASE_OVER) {
        return true; /* the shim repeats this on every new connection */
    }
    record_finish(&attempt->record);
    if (!record_read(attempt->logs, attempt->attempt_id, &attempt->record, &err)) {
        log_error("exit record lost", "attempt_id=%llu problem=\"%s\"",
                  (unsigned long long)attempt->attempt_id, err.text);
        attempt_over(attempt, CAUSE_SHIM_LOST, "the exit record could not be read");
        return true;
    }
    attempt_exited(attempt);
    return true;
}

static const struct {
    const char *word;
    bool (*hear)(struct attempt *attempt, char *rest);
} words[] = {
    {"prepared", hear_prepared}, {"declined", hear_declined},     {"running", hear_running},
    {"pids", hear_pids},         {"failed", hear_failed},         {"output", hear_output},
    {"exited", hear_exited},     {"checkpoint", hear_checkpoint},
};

static void hear_message(struct attempt *attempt, char *message)
{
    char *rest = message;
    const char *word = strsep(&rest, " ");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, word) == 0 && words[i].hear(attempt, rest)) {
            return;
        }
    }
    log_warning("shim unclear", "attempt_id=%llu word=%s", (unsigned long long)attempt->attempt_id, word);
}

/* Receives one message. False: there is none; *ret_closed then says whether the connection is closed. */
static bool receive(struct attempt *attempt, bool *ret_closed)
{
    char message[LIMIT_SHIM_MESSAGE + 1];
    ssize_t length = recv(attempt->shim.fd, message, LIMIT_SHIM_MESSAGE, MSG_DONTWAIT);
    *ret_closed = length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
    if (length <= 0) {
        return false;
    }
    message[length] = '\0';
    hear_message(attempt, message);
    return true;
}

/* A shim that could not send a message has closed the connection, and repeats itself on the next one. The
 * pidfd shows the death of a shim. */
static void connect_again(struct attempt *attempt)
{
    loop_unwatch(attempt->context->loop, &attempt->talk);
    cleanup_close(&attempt->shim.fd);
    attempt->shim.fd = attempt->talk.fd = shims_connect(attempt->run);
    if (attempt->talk.fd >= 0) {
        loop_watch(attempt->context->loop, &attempt->talk);
    }
}

/* The last messages of the dead shim are still in the socket. */
static void shim_died(struct attempt *attempt)
{
    bool closed = attempt->shim.fd < 0;
    while (!closed && receive(attempt, &closed)) {
    }
    shim_client_end(attempt);
    if (attempt->phase == PHASE_SHIM) {
        attempt_salvage(attempt);
    }
}

static void talk_ready(void *closure, uint32_t events)
{
    struct attempt *attempt = closure;
    bool closed;
    if (!receive(attempt, &closed) && closed) {
        connect_again(attempt);
        if (attempt->shim.fd < 0 && attempt->shim.pidfd < 0) {
            shim_died(attempt);
        }
    }
}

static void death_ready(void *closure, uint32_t events)
{
    shim_died(closure);
}

void shim_client_begin(struct attempt *attempt)
{
    attempt->talk = (struct loop_watch){attempt->shim.fd, EPOLLIN, talk_ready, attempt};
    attempt->death = (struct loop_watch){attempt->shim.pidfd, EPOLLIN, death_ready, attempt};
    if (attempt->talk.fd >= 0) {
        loop_watch(attempt->context->loop, &attempt->talk);
    }
    if (attempt->death.fd >= 0) {
        loop_watch(attempt->context->loop, &attempt->death);
    }
}

static void unwatch(struct attempt *attempt)
{
    loop_unwatch(attempt->context->loop, &attempt->talk);
    loop_unwatch(attempt->context->loop, &attempt->death);
    attempt->talk.fd = attempt->death.fd = -1;
}

void shim_client_end(struct attempt *attempt)
{
    unwatch(attempt);
    shim_process_close(&attempt->shim);
}

void shim_client_dismiss(struct attempt *attempt)
{
    unwatch(attempt);
    shims_dismiss(attempt->context->shims, &attempt->shim);
}

void shim_client_catch_up(struct attempt *attempt, int64_t patience_ms)
{
    struct pollfd talk = {.fd = attempt->shim.fd, .events = POLLIN};
    bool closed = false;
    if (talk.fd >= 0 && poll(&talk, 1, (int)patience_ms) == 1) {
        while (receive(attempt, &closed)) {
        }
    }
}
