/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the terminal while `gpuctl top` runs. It promises that the terminal is as before when the program ends
 * or is stopped, also by SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGTSTP, and that it is taken over again when
 * the program goes on. Signals are read from a file, so nothing happens in a handler. */
#include "client/cli/top/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"

/* Alternate screen, no cursor, lines that are cut instead of wrapped; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

struct top_screen {
    struct termios before; /* of the terminal */
    sigset_t mask_before;  /* of the process */
    int signal_fd;
    bool entered;
    size_t width, height;
    struct text_list shown; /* lines that the terminal has; none: it has to be drawn anew */
};

bool top_screen_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

/* --- the terminal --------------------------------------------------------------------------------------- */

static bool write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static void measure(struct top_screen *screen)
{
    struct winsize size;
    bool told = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    screen->width = told ? size.ws_col : 80;
    screen->height = told ? size.ws_row : 24;
    text_list_finish(&screen->shown);
}

/* Keys come at once and are not shown; those of signals still send them. */
static bool enter(struct top_screen *screen)
{
    struct termios raw = screen->before;
    raw.c_iflag &= (tcflag_t) ~(ICRNL | IXON);
    raw.c_lflag &= (tcflag_t) ~(ECHO | ICANON | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    measure(screen);
    screen->entered = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 && write_all(ENTER, strlen(ENTER));
    return screen->entered;
}

static void leave(struct top_screen *screen)
{
    if (screen->entered) {
        write_all(LEAVE, strlen(LEAVE));
        tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
        screen->entered = false;
    }
}

/* --- signals -------------------------------------------------------------------------------------------- */

static bool catch_signals(struct top_screen *screen, struct err *err)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
        sigaddset(&mask, caught[i]);
    }
    if (sigprocmask(SIG_BLOCK, &mask, &screen->mask_before) != 0) {
        return err_errno(err, "cannot block signals");
    }
    screen->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return screen->signal_fd >= 0 || err_errno(err, "cannot watch for signals");
}

/* The signal's own effect stops the program; in a group that no shell controls it has none. */
static void stop(struct top_screen *screen)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    leave(screen);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stops, NULL);
    sigprocmask(SIG_BLOCK, &stops, NULL);
    enter(screen);
}

static void take_signals(struct top_screen *screen, int *ret_end)
{
    struct signalfd_siginfo info;
    while (read(screen->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGWINCH:
            measure(screen);
            write_all("\033[2J", 4);
            break;
        case SIGTSTP:
            stop(screen);
            break;
        case SIGCONT: /* the shell may have set the terminal up for itself */
            enter(screen);
            break;
        default:
            *ret_end = (int)info.ssi_signo;
            break;
        }
    }
}

/* --- the face ------------------------------------------------------------------------------------------- */

struct top_screen *top_screen_create(struct err *err)
{
    struct top_screen *screen = xzalloc(sizeof *screen);
    screen->signal_fd = -1;
    sigprocmask(SIG_BLOCK, NULL, &screen->mask_before);
    bool good = tcgetattr(STDIN_FILENO, &screen->before) == 0 || err_errno(err, "cannot ask the terminal");
    good =
        good && catch_signals(screen, err) && (enter(screen) || err_errno(err, "cannot set the terminal up"));
    if (!good) {
        top_screen_destroy(screen);
        return NULL;
    }
    return screen;
}

void top_screen_destroy(struct top_screen *screen)
{
    if (screen == NULL) {
        return;
    }
    leave(screen);
    if (screen->signal_fd >= 0) {
        close(screen->signal_fd);
    }
    sigprocmask(SIG_SETMASK, &screen->mask_before, NULL);
    text_list_finish(&screen->shown);
    free(screen);
}

void top_screen_files(const struct top_screen *screen, int ret_files[2])
{
    ret_files[0] = STDIN_FILENO;
    ret_files[1] = screen->signal_fd;
}

bool top_screen_read(struct top_screen *screen, struct top_keys *keys, int *ret_end)
{
    take_signals(screen, ret_end);
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&in, 1, 0) <= 0) {
        return false;
    }
    char bytes[TOP_KEYS_BYTES];
    ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    if (length > 0) {
        top_keys_add(keys, bytes, (size_t)length);
    } else if (length == 0 || errno != EINTR) {
        *ret_end = SIGHUP;
    }
    return length > 0;
}

void top_screen_size(const struct top_screen *screen, size_t *ret_width, size_t *ret_height)
{
    *ret_width = screen->width;
    *ret_height = screen->height;
}

/* A line is erased before it is written: behind a full one the cursor stands on its last character. */
static void add_line(const struct top_screen *screen, size_t number, const char *line, struct text *out)
{
    const char *before = number < screen->shown.count ? screen->shown.items[number] : "";
    if (strcmp(before, line) != 0) {
        text_printf(out, "\033[%zu;1H\033[K", number + 1);
        text_append(out, line);
    }
}

bool top_screen_show(struct top_screen *screen, const struct text_list *lines, struct err *err)
{
    autotext struct text out = {0};
    struct text_list now = {0};
    for (size_t i = 0; i < screen->height; i++) {
        text_list_add(&now, xstrdup(i < lines->count ? lines->items[i] : ""));
        add_line(screen, i, now.items[i], &out);
    }
    text_list_finish(&screen->shown);
    screen->shown = now;
    return write_all(out.bytes, out.length) || err_errno(err, "cannot write to the terminal");
}
