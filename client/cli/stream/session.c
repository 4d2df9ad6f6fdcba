/* SPDX-License-Identifier: Apache-2.0 */
/* One command beside a rank, joined to the stdin, stdout and stderr of gpuctl. With a terminal, keys go to
 * the command as they are pressed; the terminal is put back however gpuctl ends, but for SIGKILL. */
#include "client/cli/stream/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/cli/show/terminal.h"
#include "client/cli/transport/channel.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

/* --- the terminal --------------------------------------------------------------------------------------- */

static struct termios before;
static bool is_raw;

static void terminal_restore(void)
{
    if (is_raw) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
        is_raw = false;
    }
}

static bool terminal_raw(struct err *err)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &before) != 0) {
        return err_errno(err, "cannot read the settings of the terminal");
    }
    raw = before;
    cfmakeraw(&raw);
    atexit(terminal_restore);
    is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    return is_raw || err_errno(err, "cannot change the settings of the terminal");
}

static struct winsize window(void)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
    return size;
}

/* --- the session ---------------------------------------------------------------------------------------- */

struct session {
    const struct session_request *request;
    struct channel *channel;
    struct terminal shown[2];
    bool reads;  /* what the command is to read */
    int signals; /* SIGWINCH, and those that end gpuctl; -1: none are caught */
    bool over;
    int *ret_exit;
};

static bool show(struct session *session, int number, const struct frame *frame, struct err *err)
{
    FILE *to = session->request->to != NULL ? session->request->to : stdout;
    FILE *file = number == 0 ? to : stderr;
    bool written = session->request->terminal
                       ? fwrite(frame->bytes, 1, frame->length, file) == frame->length
                       : terminal_write(&session->shown[number], file, frame->bytes, frame->length);
    return (written && fflush(file) == 0) || err_errno(err, "cannot write what the command said");
}

static bool take(struct session *session, const struct frame *frame, struct err *err)
{
    switch (frame->kind) {
    case FRAME_DATA:
        return show(session, 0, frame, err);
    case FRAME_STDERR:
        return show(session, 1, frame, err);
    case FRAME_EXIT:
        session->over = true;
        *session->ret_exit = (int)frame->numbers[0];
        return true;
    case FRAME_FAILURE:
        return err_set(err, ERR_CONFLICT, "%.*s", (int)frame->length, frame->bytes);
    case FRAME_END:
    case FRAME_SIZE:
    case FRAME_CREDIT:
        break;
    }
    return true;
}

static bool take_all(struct session *session, struct err *err)
{
    struct frame frame;
    while (!session->over) {
        switch (channel_receive(session->channel, &frame, err)) {
        case CHANNEL_NOTHING:
            return true;
        case CHANNEL_ENDED:
            return channel_lost(session->request->job_id, err);
        case CHANNEL_FRAME:
            if (!take(session, &frame, err)) {
                return false;
            }
            break;
        }
    }
    return true;
}

static bool read_input(struct session *session, struct err *err)
{
    static char buffer[LIMIT_FRAME_BYTES];
    size_t credit = channel_credit(session->channel);
    ssize_t got = read(session->request->from, buffer, credit < sizeof buffer ? credit : sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    session->reads = got > 0;
    return got > 0 ? channel_send(session->channel, FRAME_DATA, buffer, (size_t)got, err)
                   : channel_send(session->channel, FRAME_END, "", 0, err);
}

static bool hear_signal(struct session *session, struct err *err)
{
    struct signalfd_siginfo info;
    if (read(session->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return true;
    }
    if (info.ssi_signo != SIGWINCH) {
        return err_set(err, ERR_IO, "ended by signal %d (%s), and the command with it", (int)info.ssi_signo,
                       strsignal((int)info.ssi_signo));
    }
    struct winsize size = window();
    return channel_send_numbers(session->channel, FRAME_SIZE, size.ws_row, size.ws_col, err);
}

static bool turn(struct session *session, struct err *err)
{
    bool reads = session->reads && channel_credit(session->channel) > 0;
    struct pollfd files[] = {{.fd = channel_fd(session->channel), .events = POLLIN},
                             {.fd = session->signals, .events = POLLIN},
                             {.fd = reads ? session->request->from : -1, .events = POLLIN}};
    if (poll(files, sizeof files / sizeof files[0], -1) < 0) {
        return errno == EINTR || err_errno(err, "cannot wait");
    }
    return (files[0].revents == 0 || take_all(session, err)) &&
           (files[1].revents == 0 || hear_signal(session, err)) &&
           (session->over || files[2].revents == 0 || read_input(session, err));
}

static bool catch_signals(struct session *session, struct err *err)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGWINCH);
    sigaddset(&caught, SIGTERM);
    sigaddset(&caught, SIGHUP);
    sigaddset(&caught, SIGINT);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    session->signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    return session->signals >= 0 || err_errno(err, "cannot watch for signals");
}

/* --- opening -------------------------------------------------------------------------------------------- */

static json_t *body_of(const struct session_request *request)
{
    json_t *body = json_object();
    member_put_text(body, "kind", "exec");
    member_put_int(body, "rank", request->rank);
    member_put(body, "command", json_incref(request->command));
    member_put_bool(body, "input", request->input);
    if (request->terminal) {
        struct winsize size = window();
        json_t *terminal = json_object();
        member_put_int(terminal, "rows", size.ws_row);
        member_put_int(terminal, "columns", size.ws_col);
        member_put_text(terminal, "term", getenv("TERM"));
        member_put(body, "terminal", terminal);
    }
    return body;
}

bool session_allowed(bool interactive, bool terminal, struct err *err)
{
    if (terminal && (!interactive || !isatty(STDIN_FILENO))) {
        err_set(err, ERR_USAGE, interactive ? "stdin is no terminal" : "-t needs -i, too");
        return err_hint(err, interactive ? "leave out -t" : "write -it");
    }
    return true;
}

bool session_run(struct api *api, const struct session_request *request, int *ret_exit, struct err *err)
{
    autojson json_t *body = body_of(request);
    autochannel struct channel *channel = channel_open(api, request->job_id, body, err);
    struct session session = {
        .request = request, .channel = channel, .reads = request->input, .signals = -1, .ret_exit = ret_exit};
    bool good = channel != NULL &&
                ((!request->terminal && !request->interruptible) || catch_signals(&session, err)) &&
                (!request->terminal || terminal_raw(err)) && take_all(&session, err);
    while (good && !session.over) {
        good = turn(&session, err);
    }
    terminal_restore();
    if (!good && request->lost != NULL) {
        request->lost(request->closure, err);
    }
    cleanup_close(&session.signals);
    return good;
}
