/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl exec`: runs a command beside a rank of a running job, and exits as it did. With a terminal, keys go
 * to the command as they are pressed; the terminal is put back however gpuctl ends, but for SIGKILL. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/cli/frame/verb.h"
#include "client/cli/show/terminal.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/channel.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

struct exec_options {
    bool interactive, terminal;
    int64_t rank;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct exec_options, interactive, 'i', "stdin", "the command reads what gpuctl's stdin gets"),
    ROW_FLAG(struct exec_options, terminal, 't', "tty", "the command has a terminal, as a shell wants it"),
    ROW_INT(struct exec_options, rank, 0, "rank", "N", "the rank beside which it runs (default: 0)", 0,
            LIMIT_GPUS - 1),
    ROWS_END};

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
    const struct call *call;
    struct channel *channel;
    struct terminal shown[2];
    bool reads;  /* stdin */
    int signals; /* SIGWINCH, and those that end gpuctl; -1: none are caught */
    bool over;
    int *ret_exit;
};

static bool show(struct session *session, int number, const struct frame *frame, struct err *err)
{
    const struct exec_options *options = session->call->options;
    FILE *file = number == 0 ? stdout : stderr;
    bool written = options->terminal
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
            return channel_lost(session->call->id, err);
        case CHANNEL_FRAME:
            if (!take(session, &frame, err)) {
                return false;
            }
            break;
        }
    }
    return true;
}

static bool read_stdin(struct session *session, struct err *err)
{
    static char buffer[LIMIT_FRAME_BYTES];
    size_t credit = channel_credit(session->channel);
    ssize_t got = read(STDIN_FILENO, buffer, credit < sizeof buffer ? credit : sizeof buffer);
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
                             {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(files, sizeof files / sizeof files[0], -1) < 0) {
        return errno == EINTR || err_errno(err, "cannot wait");
    }
    return (files[0].revents == 0 || take_all(session, err)) &&
           (files[1].revents == 0 || hear_signal(session, err)) &&
           (session->over || files[2].revents == 0 || read_stdin(session, err));
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

/* --- the verb ------------------------------------------------------------------------------------------- */

/* Without a command it is a shell of the job's user. */
static json_t *command_of(const struct call *call)
{
    json_t *command = json_array();
    size_t first = call->rest_count > 1 && strcmp(call->rest[1], "--") == 0 ? 2 : 1;
    for (size_t i = first; i < call->rest_count; i++) {
        json_array_append_new(command, json_string(call->rest[i]));
    }
    if (json_array_size(command) == 0) {
        json_array_append_new(command, json_string("sh"));
        json_array_append_new(command, json_string("-c"));
        json_array_append_new(
            command, json_string("if command -v bash > /dev/null; then exec bash; else exec sh; fi"));
    }
    return command;
}

static json_t *body_of(const struct call *call)
{
    const struct exec_options *options = call->options;
    json_t *body = json_object();
    member_put_text(body, "kind", "exec");
    member_put_int(body, "rank", options->rank);
    member_put(body, "command", command_of(call));
    member_put_bool(body, "input", options->interactive);
    if (options->terminal) {
        struct winsize size = window();
        json_t *terminal = json_object();
        member_put_int(terminal, "rows", size.ws_row);
        member_put_int(terminal, "columns", size.ws_col);
        member_put_text(terminal, "term", getenv("TERM"));
        member_put(body, "terminal", terminal);
    }
    return body;
}

static bool check(const struct call *call, struct err *err)
{
    const struct exec_options *options = call->options;
    bool dashed = call->rest_count > 1 && call->rest[1][0] == '-' && strcmp(call->rest[1], "--") != 0;
    if (dashed) {
        err_set(err, ERR_USAGE, "\"%s\" stands behind the job", call->rest[1]);
        return err_hint(err, "options stand before it: gpuctl exec -it JOB -- COMMAND");
    }
    if (call->rest_count < 2 && !options->terminal && !options->interactive) {
        err_set(err, ERR_USAGE, "there is no command");
        return err_hint(err, "gpuctl exec JOB -- COMMAND, or gpuctl exec -it JOB for a shell");
    }
    if (options->terminal && (!options->interactive || !isatty(STDIN_FILENO))) {
        err_set(err, ERR_USAGE, options->interactive ? "stdin is no terminal" : "-t needs -i, too");
        return err_hint(err, options->interactive ? "leave out -t" : "gpuctl exec -it");
    }
    return true;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct exec_options *options = call->options;
    autojson json_t *body = body_of(call);
    autochannel struct channel *channel = channel_open(call->api, call->id, body, err);
    struct session session = {
        .call = call, .channel = channel, .reads = options->interactive, .signals = -1, .ret_exit = ret_exit};
    bool good = channel != NULL &&
                (!options->terminal || (catch_signals(&session, err) && terminal_raw(err))) &&
                take_all(&session, err);
    while (good && !session.over) {
        good = turn(&session, err);
    }
    terminal_restore();
    cleanup_close(&session.signals);
    return good;
}

const struct verb verb_exec = {
    .name = "exec",
    .arguments = "JOB [--] [COMMAND [ARGUMENT]...]",
    .summary = "Run a command beside a rank of a running job.",
    .details = "It has the rank's user, environment, folder and limits, and ends with the job at the latest. "
               "gpuctl exits\n"
               "with its code (128+N for signal N), and with 125 when gpuctl itself failed. It is your own "
               "job, or you are\n"
               "an administrator. Options stand before JOB.\n"
               "\n"
               "Examples:\n"
               "  gpuctl exec x7k2 -- nvidia-smi\n"
               "  gpuctl exec -it x7k2                     a shell\n"
               "  gpuctl exec -it --rank 3 x7k2 -- py-spy top --pid 1234\n"
               "  gpuctl exec -i x7k2 -- tar x < more.tar",
    .argument = ARGUMENT_JOB,
    .least = 1,
    .most = SIZE_MAX,
    .stop_at_positional = true,
    .reach = REACH_CONTROLLER,
    .need = NEED_JOB,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct exec_options),
    .rows = {rows},
    .check = check,
    .run = run,
};
