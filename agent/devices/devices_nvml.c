/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the node's GPUs: the helper process that looks at them, the order of looks and their deadlines.
 * Once the agent has started, the loop never waits for the driver. A GPU whose state is not known counts as
 * broken. A GPU whose look hangs delays the looks at others only briefly. A helper that does not answer is
 * killed but not waited for, because the driver may hold it for ever. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/program.h"
#include "agent/devices/devices_helper.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define SILENT       "the NVIDIA driver does not answer; see dmesg, and reboot the node if it stays so"
#define HINT_DEVICES "name GPUs by index or UUID, as nvidia-smi -L shows them"
#define NOBODY       SIZE_MAX

/* The looks at one GPU. */
struct looks {
    int64_t asked_us, done_us; /* CLOCK_BOOTTIME of the last look */
    int64_t wanted_us;         /* a look requested at this time or later is wanted */
    int64_t due_ms;            /* of the next look; INT64_MAX: never */
    int64_t backoff_ms;        /* current pause after a look that hung; 0: the last look did not hang */
};

struct watcher {
    struct devices *devices;
    char *library;
    struct rlimit files; /* the limits before the agent raised them */
    struct loop *loop;   /* NULL: the GPUs are not watched yet */
    void (*changed)(void *closure);
    void *closure;
    struct loop_watch talk; /* socket to the helper; fd -1: there is none */
    struct loop_timer timer;
    int pidfd;
    int stuck[LIMIT_STUCK_HELPERS]; /* pidfds of killed helpers that may still live; -1: free */
    bool opening;                   /* HELPER_OPEN was sent; no other question may be sent yet */
    size_t asked;                   /* position of the GPU that the helper looks at; NOBODY: none */
    int64_t deadline_ms, restart_ms, backoff_ms;
    struct looks *looks;
};

/* --- the helper's process ------------------------------------------------------------------------------- */

/* Starts this very binary, even after an upgrade has replaced the file. */
static int spawn(const struct watcher *watcher, int socket, int null, pid_t *ret_pid)
{
    const char *const arguments[] = {"gpuagent", HELPER_WORD, watcher->library, NULL};
    const int fds[][2] = {{null, STDIN_FILENO}, {null, STDOUT_FILENO}, {socket, HELPER_FD}};
    const struct program_call call = {.program = "/proc/self/exe",
                                      .arguments = arguments,
                                      .variables = (const char *const *)(uintptr_t)environ,
                                      .fds = fds,
                                      .fd_count = sizeof fds / sizeof fds[0],
                                      .files = &watcher->files};
    return program_start(&call, ret_pid);
}

static bool start_helper(struct watcher *watcher, struct err *err)
{
    int pair[2];
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_errno(err, "cannot make a socket for the helper that asks the NVIDIA driver");
    }
    autoclose int own = pair[0];
    autoclose int theirs = pair[1];
    autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    errno = spawn(watcher, theirs, null, &pid);
    if (errno != 0) {
        return err_errno(err, "cannot start the helper that asks the NVIDIA driver");
    }
    watcher->pidfd = pidfd_open(pid, 0);
    watcher->talk.fd = give_fd(&own);
    return true;
}

/* Keeps the pidfd of a killed helper, because the driver may hold the process for ever. It is reaped by the
 * agent's SIGCHLD handler or by reap_stuck. */
static void put_aside(struct watcher *watcher)
{
    for (size_t i = 0; i < LIMIT_STUCK_HELPERS; i++) {
        if (watcher->stuck[i] < 0) {
            watcher->stuck[i] = give_fd(&watcher->pidfd);
            return;
        }
    }
    cleanup_close(&watcher->pidfd); /* no new helper is started until a place is free */
}

static void end_helper(struct watcher *watcher)
{
    if (watcher->talk.fd < 0) {
        return;
    }
    pidfd_send_signal(watcher->pidfd, SIGKILL, NULL, 0);
    if (watcher->loop != NULL) {
        loop_unwatch(watcher->loop, &watcher->talk);
    }
    close(give_fd(&watcher->talk.fd));
    put_aside(watcher);
    watcher->opening = false;
    watcher->asked = NOBODY;
}

/* Reaps ended helpers; true if there is room for another stuck one. */
static bool reap_stuck(struct watcher *watcher)
{
    bool room = false;
    for (size_t i = 0; i < LIMIT_STUCK_HELPERS; i++) {
        struct pollfd ended = {.fd = watcher->stuck[i], .events = POLLIN};
        siginfo_t info;
        if (watcher->stuck[i] >= 0 && poll(&ended, 1, 0) > 0) {
            waitid(P_PIDFD, (id_t)watcher->stuck[i], &info, WEXITED | WNOHANG);
            cleanup_close(&watcher->stuck[i]);
            watcher->stuck[i] = -1;
        }
        room = room || watcher->stuck[i] < 0;
    }
    return room;
}

static bool say(const struct watcher *watcher, const struct helper_ask *ask)
{
    return send(watcher->talk.fd, ask, sizeof *ask, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *ask;
}

/* --- the start: waits, within a deadline ---------------------------------------------------------------- */

static bool wait_for(const struct watcher *watcher, int64_t deadline_ms, void *answer, size_t size,
                     struct err *err)
{
    struct pollfd ready = {.fd = watcher->talk.fd, .events = POLLIN};
    int64_t left_ms = deadline_ms - clock_boot_ms();
    int found = left_ms > 0 ? poll(&ready, 1, (int)left_ms) : 0;
    if (found > 0 && recv(watcher->talk.fd, answer, size, 0) == (ssize_t)size) {
        return true;
    }
    err_set(err, ERR_IO, found > 0 ? "the helper that asks the NVIDIA driver has ended" : SILENT);
    return err_hint(err, "try nvidia-smi on this node: it has to work first");
}

static bool ask_state(const struct watcher *watcher, enum helper_kind kind, int64_t deadline_ms,
                      size_t *ret_count, struct err *err)
{
    struct helper_state state;
    if (!say(watcher, &(struct helper_ask){.kind = kind})) {
        return err_errno(err, "the helper that asks the NVIDIA driver cannot be asked");
    }
    if (!wait_for(watcher, deadline_ms, &state, sizeof state, err)) {
        return false;
    }
    *ret_count = state.count;
    return state.problem[0] == '\0' || err_set(err, ERR_IO, "%s", state.problem);
}

static bool open_helper(struct watcher *watcher, struct err *err)
{
    size_t none;
    return start_helper(watcher, err) &&
           ask_state(watcher, HELPER_OPEN, clock_boot_ms() + GPU_OPEN_MS, &none, err);
}

static struct nvml_gpu *ask_all(const struct watcher *watcher, size_t *ret_count, struct err *err)
{
    int64_t deadline_ms = clock_boot_ms() + GPU_OPEN_MS;
    if (!ask_state(watcher, HELPER_LIST, deadline_ms, ret_count, err)) {
        return NULL;
    }
    struct nvml_gpu *gpus = xzalloc(*ret_count * sizeof *gpus);
    bool good = true;
    for (size_t i = 0; i < *ret_count && good; i++) {
        good = wait_for(watcher, deadline_ms, &gpus[i], sizeof gpus[i], err);
    }
    if (!good) {
        free(give(gpus));
    }
    return gpus;
}

static struct helper_ask look_at(const struct devices *devices, size_t at)
{
    struct helper_ask ask = {.kind = HELPER_LOOK};
    snprintf(ask.uuid, sizeof ask.uuid, "%s", devices->items[at].uuid);
    return ask;
}

/* Takes the first look at each GPU. If a look hangs, the helper is killed, and later looks follow. */
static void look_at_all(struct devices *devices)
{
    struct watcher *watcher = devices->watcher;
    struct err err;
    for (size_t i = 0; i < devices->count; i++) {
        struct helper_ask ask = look_at(devices, i);
        struct looks *looks = &watcher->looks[i];
        looks->asked_us = looks->done_us = devices->seen_us[i] = clock_boot_us();
        if (looks->due_ms == INT64_MAX || (watcher->talk.fd < 0 && !open_helper(watcher, &err))) {
            continue;
        }
        int64_t deadline_ms = clock_boot_ms() + GPU_LOOK_MS;
        if (!say(watcher, &ask) ||
            !wait_for(watcher, deadline_ms, &devices->sights[i], sizeof devices->sights[i], &err)) {
            end_helper(watcher);
        }
    }
}

/* --- the choice of GPUs --------------------------------------------------------------------------------- */

/* Whether the list names this GPU, by index or UUID. Counts the matches. */
static bool is_listed(const char *list, const struct nvml_gpu *gpu, size_t *matched)
{
    if (strcmp(list, "all") == 0) {
        return true;
    }
    autofree char *copy = xstrdup(list);
    char *rest = copy;
    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        int64_t number;
        bool by_index = text_to_int(word, 0, LIMIT_NODE_DEVICES, &number) && number == gpu->index;
        if (by_index || strcmp(word, gpu->uuid) == 0) {
            *matched += 1;
            return true;
        }
    }
    return false;
}

/* "NVIDIA GeForce RTX 4090" down to 4050; the RTX 4000 and 4500 are other cards. */
static bool has_no_peer_access(const char *name)
{
    const char *series = strstr(name, "GeForce RTX 40");
    return series != NULL && series[strlen("GeForce RTX 40")] >= '5';
}

/* A GPU that cannot be read is probably of the same type as the others. */
static char *type_of(const struct devices *devices, const struct nvml_gpu *gpu, const char *type)
{
    if (type == NULL && *gpu->name == '\0' && devices->count > 1) {
        type = devices->items[0].type;
    }
    return type != NULL ? xstrdup(type) : devices_short_name(gpu->name);
}

static void add_gpu(struct devices *devices, const struct nvml_gpu *gpu, const char *type)
{
    size_t at = devices->count++;
    devices->no_peer_access = devices->no_peer_access || has_no_peer_access(gpu->name);
    devices->items = xrealloc(devices->items, devices->count * sizeof *devices->items);
    devices->sights = xrealloc(devices->sights, devices->count * sizeof *devices->sights);
    devices->sights[at] =
        *gpu->name == '\0' ? gpu->problem : (struct device_sight){.state = DEVICE_BROKEN, .reason = SILENT};
    devices->items[at] = (struct device){
        .index = gpu->index,
        .uuid = xstrdup(gpu->uuid),
        .type = type_of(devices, gpu, type),
        .memory_bytes = gpu->memory_bytes,
        .group = gpu->group,
    };
}

/* Numbers groups from 0, in the order of their first members. */
static void number_groups(struct devices *devices)
{
    int64_t next = 0;
    autofree int64_t *old = xalloc((devices->count + 1) * sizeof *old);
    for (size_t i = 0; i < devices->count; i++) {
        size_t first = 0;
        old[i] = devices->items[i].group;
        while (first < i && old[first] != old[i]) {
            first++;
        }
        bool known = old[i] >= 0;
        devices->items[i].group = !known ? -1 : first < i ? devices->items[first].group : next++;
    }
}

static size_t count_words(const char *list)
{
    size_t words = 1;
    for (const char *at = list; *at != '\0'; at++) {
        words += *at == ',';
    }
    return words;
}

static bool choose(const struct nvml_gpu *gpus, size_t count, const char *list, const char *type,
                   struct devices *devices, struct err *err)
{
    size_t matched = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_listed(list, &gpus[i], &matched)) {
            add_gpu(devices, &gpus[i], type);
        }
    }
    if (strcmp(list, "all") != 0 && matched != count_words(list)) {
        return err_field(err, ERR_IO, "--devices", HINT_DEVICES,
                         "--devices %s names a GPU that is not here, or one twice", list);
    }
    if (devices->count == 0) {
        return err_set(err, ERR_IO, "the NVIDIA driver shows no GPU");
    }
    number_groups(devices);
    return true;
}

static struct watcher *watcher_create(const char *library)
{
    struct watcher *watcher = xzalloc(sizeof *watcher);
    watcher->library = xstrdup(library);
    watcher->files = program_limit();
    watcher->talk.fd = watcher->pidfd = -1;
    watcher->asked = NOBODY;
    for (size_t i = 0; i < LIMIT_STUCK_HELPERS; i++) {
        watcher->stuck[i] = -1;
    }
    return watcher;
}

bool devices_open_nvml(const char *library, const char *list, const char *type, struct devices *ret_devices,
                       struct err *err)
{
    struct devices devices = {.watcher = watcher_create(library)};
    size_t count = 0;
    autofree struct nvml_gpu *gpus =
        open_helper(devices.watcher, err) ? ask_all(devices.watcher, &count, err) : NULL;
    if (gpus == NULL || !choose(gpus, count, list, type, &devices, err)) {
        devices_close(&devices);
        return false;
    }
    devices.watcher->looks = xzalloc(devices.count * sizeof *devices.watcher->looks);
    devices.seen_us = xzalloc(devices.count * sizeof *devices.seen_us);
    for (size_t i = 0; i < devices.count; i++) {
        bool readable = strncmp(devices.items[i].uuid, NVML_UNREADABLE, strlen(NVML_UNREADABLE)) != 0;
        devices.watcher->looks[i].due_ms = readable ? 0 : INT64_MAX;
    }
    look_at_all(&devices);
    *ret_devices = devices;
    return true;
}

/* --- what was seen -------------------------------------------------------------------------------------- */

static void note(struct watcher *watcher, size_t at, const struct device_sight *sight)
{
    struct devices *devices = watcher->devices;
    if (devices->sights[at].state != DEVICE_BROKEN && sight->state == DEVICE_BROKEN) {
        log_error("gpu broken", "index=%lld uuid=%s reason=\"%s\"", (long long)devices->items[at].index,
                  devices->items[at].uuid, sight->reason);
    }
    devices->sights[at] = *sight;
}

static void note_silence(struct watcher *watcher, size_t at)
{
    struct device_sight sight = {.state = DEVICE_BROKEN, .reason = SILENT};
    note(watcher, at, &sight);
}

static void delay(int64_t *backoff_ms)
{
    int64_t next_ms = *backoff_ms > 0 ? 2 * *backoff_ms : GPU_BACKOFF_MS;
    *backoff_ms = next_ms < GPU_BACKOFF_MAX_MS ? next_ms : GPU_BACKOFF_MAX_MS;
}

/* Handles a look or a start of the driver that hung. */
static void give_up(struct watcher *watcher, const char *why)
{
    int64_t now_ms = clock_boot_ms();
    log_error("gpu helper ends", "reason=\"%s\"", why);
    if (watcher->asked != NOBODY) {
        struct looks *looks = &watcher->looks[watcher->asked];
        note_silence(watcher, watcher->asked);
        delay(&looks->backoff_ms);
        looks->due_ms = now_ms + looks->backoff_ms;
        watcher->backoff_ms = 0;
        watcher->restart_ms = now_ms;
    } else {
        for (size_t i = 0; i < watcher->devices->count; i++) {
            note_silence(watcher, i);
        }
        delay(&watcher->backoff_ms);
        watcher->restart_ms = now_ms + watcher->backoff_ms;
    }
    end_helper(watcher);
    watcher->changed(watcher->closure);
}

static void take_sight(struct watcher *watcher, const struct device_sight *sight)
{
    size_t at = watcher->asked;
    struct looks *looks = &watcher->looks[at];
    watcher->asked = NOBODY;
    looks->done_us = clock_boot_us();
    looks->backoff_ms = 0;
    looks->due_ms = looks->asked_us >= looks->wanted_us ? looks->asked_us / 1000 + GPU_LOOK_PACE_MS : 0;
    watcher->devices->seen_us[at] = looks->asked_us;
    note(watcher, at, sight);
    watcher->changed(watcher->closure);
}

static void take_state(struct watcher *watcher, const struct helper_state *state)
{
    watcher->opening = false;
    if (state->problem[0] == '\0') {
        watcher->backoff_ms = 0;
        return;
    }
    struct device_sight sight = {.state = DEVICE_BROKEN};
    snprintf(sight.reason, sizeof sight.reason, "%s", state->problem);
    for (size_t i = 0; i < watcher->devices->count; i++) {
        note(watcher, i, &sight);
    }
    delay(&watcher->backoff_ms);
    watcher->restart_ms = clock_boot_ms() + watcher->backoff_ms;
    end_helper(watcher);
    watcher->changed(watcher->closure);
}

/* --- the order of looks --------------------------------------------------------------------------------- */

static size_t next_due(const struct watcher *watcher, int64_t *ret_due_ms)
{
    size_t next = 0;
    for (size_t i = 1; i < watcher->devices->count; i++) {
        next = watcher->looks[i].due_ms < watcher->looks[next].due_ms ? i : next;
    }
    *ret_due_ms = watcher->looks[next].due_ms;
    return next;
}

static void answered(void *closure, uint32_t events);

static void ask_next(struct watcher *watcher, size_t next, int64_t now_ms)
{
    struct helper_ask ask = look_at(watcher->devices, next);
    watcher->asked = next;
    watcher->looks[next].asked_us = clock_boot_us();
    watcher->deadline_ms = now_ms + GPU_LOOK_MS;
    if (!say(watcher, &ask)) {
        give_up(watcher, "it has ended");
    }
}

static void start_again(struct watcher *watcher, int64_t now_ms)
{
    struct err err;
    watcher->restart_ms = now_ms + GPU_BACKOFF_MS;
    if (!reap_stuck(watcher)) {
        return;
    }
    if (!start_helper(watcher, &err)) {
        log_error("gpu helper unstarted", "problem=\"%s\"", err.text);
        return;
    }
    watcher->talk.ready = answered;
    loop_watch(watcher->loop, &watcher->talk);
    watcher->opening = true;
    watcher->deadline_ms = now_ms + GPU_OPEN_MS;
    say(watcher, &(struct helper_ask){.kind = HELPER_OPEN});
}

static void note_stale(struct watcher *watcher, int64_t now_ms)
{
    bool any = false;
    for (size_t i = 0; i < watcher->devices->count; i++) {
        bool stale = now_ms - watcher->looks[i].done_us / 1000 > GPU_STALE_MS;
        if (stale && watcher->devices->sights[i].state != DEVICE_BROKEN) {
            note_silence(watcher, i);
            any = true;
        }
    }
    if (any) {
        watcher->changed(watcher->closure);
    }
}

/* Does the work that is due, and sets the timer for the next. */
static void step(struct watcher *watcher)
{
    int64_t now_ms = clock_boot_ms(), at_ms;
    bool waits = watcher->opening || watcher->asked != NOBODY;
    if (waits && now_ms >= watcher->deadline_ms) {
        give_up(watcher, watcher->opening ? "the driver does not start" : "a look at a GPU hangs");
        waits = false;
    }
    if (watcher->talk.fd < 0 && now_ms >= watcher->restart_ms) {
        start_again(watcher, now_ms);
        waits = watcher->opening;
    }
    size_t next = next_due(watcher, &at_ms);
    if (!waits && watcher->talk.fd >= 0 && now_ms >= at_ms) {
        ask_next(watcher, next, now_ms);
        waits = watcher->asked != NOBODY;
    }
    note_stale(watcher, now_ms);
    at_ms = waits ? watcher->deadline_ms : watcher->talk.fd < 0 ? watcher->restart_ms : at_ms;
    int64_t look_ms = now_ms + GPU_STALE_MS / 2; /* stale GPUs must be noticed while a driver starts, too */
    loop_arm(watcher->loop, &watcher->timer, at_ms < look_ms ? at_ms : look_ms);
}

static void timer_due(void *closure)
{
    step(closure);
}

static void answered(void *closure, uint32_t events)
{
    struct watcher *watcher = closure;
    union {
        struct device_sight sight;
        struct helper_state state;
    } answer;
    ssize_t length = recv(watcher->talk.fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (watcher->opening && length == (ssize_t)sizeof answer.state) {
        take_state(watcher, &answer.state);
    } else if (watcher->asked != NOBODY && length == (ssize_t)sizeof answer.sight) {
        take_sight(watcher, &answer.sight);
    } else {
        give_up(watcher, "it has ended");
    }
    step(watcher);
}

void devices_watch(struct devices *devices, struct loop *loop, void (*changed)(void *closure), void *closure)
{
    struct watcher *watcher = devices->watcher;
    if (watcher == NULL) {
        return;
    }
    watcher->devices = devices;
    watcher->loop = loop;
    watcher->changed = changed;
    watcher->closure = closure;
    watcher->talk = (struct loop_watch){watcher->talk.fd, EPOLLIN, answered, watcher};
    loop_set(loop, &watcher->timer, timer_due, watcher);
    loop_watch(loop, &watcher->talk);
    step(watcher);
}

void watcher_want(struct watcher *watcher, size_t at, int64_t since_us)
{
    struct looks *looks = &watcher->looks[at];
    bool seen = watcher->devices->seen_us[at] >= since_us;
    int64_t due_ms = seen ? looks->asked_us / 1000 + GPU_CLEAR_PACE_MS : 0;
    looks->wanted_us = since_us;
    if (looks->backoff_ms == 0 && due_ms < looks->due_ms) {
        looks->due_ms = due_ms;
        loop_arm(watcher->loop, &watcher->timer, watcher->asked == NOBODY ? 0 : watcher->deadline_ms);
    }
}

void watcher_destroy(struct watcher *watcher)
{
    if (watcher == NULL) {
        return;
    }
    end_helper(watcher);
    if (watcher->loop != NULL) {
        loop_disarm(watcher->loop, &watcher->timer);
    }
    reap_stuck(watcher);
    for (size_t i = 0; i < LIMIT_STUCK_HELPERS; i++) {
        cleanup_close(&watcher->stuck[i]);
    }
    free(watcher->looks);
    free(watcher->library);
    free(watcher);
}
