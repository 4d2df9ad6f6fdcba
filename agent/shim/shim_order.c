/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the lines of the agent's messages by a table: word, number of arguments, and the phases in which the
 * message has an effect. A word that comes in another phase has no effect: the agent repeats itself after a
 * restart. A message that cannot be parsed is logged. shim_attempt.c carries the messages out. */
#include "agent/shim/shim.h"

#include <signal.h>
#include <string.h>

#define ARGUMENTS_MAX 3

#define IN(phase)  (1u << (phase))
#define BEFORE_END (IN(PHASE_ASSIGNED) | IN(PHASE_PREPARED) | IN(PHASE_RUNNING) | IN(PHASE_KEPT))
#define AFTER_END  (IN(PHASE_DECLINED) | IN(PHASE_EXITED) | IN(PHASE_SYNCED))

static bool assign(struct shim *shim, char *const *argument)
{
    attempt_assign(shim, argument[0]);
    return true;
}

static bool breed(struct shim *shim, char *const *argument)
{
    warm_breed(shim, argument[0]);
    return true;
}

static bool prepare(struct shim *shim, char *const *argument)
{
    attempt_prepare(shim);
    return true;
}

static bool start(struct shim *shim, char *const *argument)
{
    attempt_start(shim, argument[0], argument[1], argument[2]);
    return true;
}

static bool run(struct shim *shim, char *const *argument)
{
    attempt_run(shim, argument[0], argument[1]);
    return true;
}

/* Keeps the cause as it is spelled, because an agent may be newer than its shims. */
static bool stop(struct shim *shim, char *const *argument)
{
    int64_t grace_ms;
    const char *cause = argument[1];
    size_t length = strspn(cause, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (!text_to_int(argument[0], 0, LIMIT_GRACE_MS, &grace_ms) || length == 0 || cause[length] != '\0' ||
        length >= sizeof shim->cause) {
        return false;
    }
    attempt_stop(shim, grace_ms, cause);
    return true;
}

static bool signal_read(const char *name, int *ret_number)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"INT", SIGINT},
                   {"HUP", SIGHUP},   {"CONT", SIGCONT}, {"URG", SIGURG}};
    *ret_number = 0;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (strcmp(signals[i].name, name) == 0) {
            *ret_number = signals[i].number;
        }
    }
    return *ret_number != 0;
}

static bool warn(struct shim *shim, char *const *argument)
{
    int number;
    if (!signal_read(argument[0], &number)) {
        return false;
    }
    attempt_warn(shim, number);
    return true;
}

static bool keep(struct shim *shim, char *const *argument)
{
    int64_t grace_ms;
    if (!text_to_int(argument[0], 0, LIMIT_GRACE_MS, &grace_ms)) {
        return false;
    }
    attempt_keep(shim, grace_ms);
    return true;
}

static bool pre_stop_signal(struct shim *shim, char *const *argument)
{
    return signal_read(argument[0], &shim->pre_stop_signal);
}

static bool lease(struct shim *shim, char *const *argument)
{
    int64_t term_ms, kill_ms;
    if (!text_to_int(argument[0], 0, SHIM_NEVER - 1, &term_ms) ||
        !text_to_int(argument[1], term_ms, SHIM_NEVER - 1, &kill_ms)) {
        return false;
    }
    shim->lease_term_ms = term_ms;
    shim->lease_kill_ms = kill_ms;
    return true;
}

static bool seen(struct shim *shim, char *const *argument)
{
    agent_socket_output_seen(shim);
    return true;
}

static bool exec(struct shim *shim, char *const *argument)
{
    int64_t rank;
    if (!text_to_int(argument[0], 0, INT32_MAX, &rank)) {
        return false;
    }
    command_begin(shim, rank);
    return true;
}

static bool reuse(struct shim *shim, char *const *argument)
{
    attempt_reuse(shim);
    return true;
}

static bool forget(struct shim *shim, char *const *argument)
{
    agent_socket_forget(shim);
    return true;
}

static const struct order {
    const char *word;
    size_t arguments;
    unsigned phases;
    bool (*work)(struct shim *shim, char *const *argument); /* false: an argument cannot be parsed */
} orders[] = {
    {"assign", 1, IN(PHASE_IDLE), assign},
    {"prepare", 0, IN(PHASE_ASSIGNED), prepare},
    {"start", 3, IN(PHASE_PREPARED), start},
    {"run", 2, IN(PHASE_ASSIGNED) | IN(PHASE_PREPARED), run},
    {"warn", 1, IN(PHASE_RUNNING), warn},
    {"soften", 1, BEFORE_END, pre_stop_signal},
    {"stop", 2, BEFORE_END, stop},
    {"lease", 2, BEFORE_END, lease},
    {"seen", 0, ~IN(PHASE_IDLE), seen},
    {"reuse", 0, AFTER_END, reuse},
    {"forget", 0, AFTER_END, forget},
    {"breed", 1, IN(PHASE_IDLE), breed},
    {"exec", 1, IN(PHASE_RUNNING) | IN(PHASE_KEPT), exec},
    {"keep", 1, IN(PHASE_RUNNING), keep},
};

static const struct order *order_find(const char *word)
{
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (strcmp(word, orders[i].word) == 0) {
            return &orders[i];
        }
    }
    return NULL;
}

/* Cuts the arguments off the text; the last argument runs to its end. */
static bool arguments_cut(char *text, size_t count, char **ret_argument)
{
    for (size_t i = 0; i < count; i++) {
        if (text == NULL || *text == '\0') {
            return false;
        }
        ret_argument[i] = i + 1 < count ? strsep(&text, " ") : text;
    }
    return count > 0 || text == NULL;
}

static void line_work(struct shim *shim, char *text)
{
    char *argument[ARGUMENTS_MAX] = {0};
    char *rest = text;
    const char *word = strsep(&rest, " ");
    const struct order *order = order_find(word);
    if (order == NULL || !arguments_cut(rest, order->arguments, argument)) {
        shim_log_error("ignores the message %.64s", word);
        return;
    }
    if ((order->phases & IN(shim->phase)) != 0 && !order->work(shim, argument)) {
        shim_log_error("ignores the message %.64s %.64s", word, argument[0]);
    }
}

void order_work(struct shim *shim, char *text)
{
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        line_work(shim, line);
    }
}
