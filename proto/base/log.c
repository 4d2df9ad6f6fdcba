/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the log level and writes log lines. Each event is one line, written with one write, whatever the
 * values hold: control characters become spaces, and long lines are cut. errno survives. Callers decide which
 * events to log and keep secrets out. */
#include "proto/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 2048 /* below PIPE_BUF, so that lines of several processes do not mix */

struct level_row {
    const char *name;
    int priority; /* syslog priority, which journald reads from "<N>" */
};

static const struct level_row levels[] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARNING] = {"warning", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
    [LOG_LEVEL_DEBUG] = {"debug", 7},
};

static atomic_int highest = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    atomic_store(&highest, (int)level);
}

bool log_level_from_text(const char *text, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(levels[i].name, text) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* journald names its socket in JOURNAL_STREAM as "device:inode"; a redirected stderr is a different file. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    if (stream == NULL || fstat(STDERR_FILENO, &status) != 0) {
        return false;
    }
    char own[64];
    snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    return strcmp(own, stream) == 0;
}

/* Converts the result of vsnprintf-like functions to the number of bytes stored. */
static size_t stored(int length, size_t room)
{
    size_t used = length > 0 ? (size_t)length : 0;
    return used < room ? used : room - 1;
}

static void write_line(const char *line, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t wrote = write(STDERR_FILENO, line + done, length - done);
        if (wrote > 0) {
            done += (size_t)wrote;
        } else if (wrote == 0 || errno != EINTR) {
            return;
        }
    }
}

void log_failure(const char *program, const struct err *err)
{
    char priority[8] = "";
    if (stderr_is_journal()) {
        snprintf(priority, sizeof priority, "<%d>", levels[LOG_LEVEL_ERROR].priority);
    }
    fprintf(stderr, "%s%s: %s\n", priority, program, err->text);
    if (err->hint[0] != '\0') {
        fprintf(stderr, "%s  remedy: %s\n", priority, err->hint);
    }
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    if ((int)level > atomic_load(&highest)) {
        return;
    }
    int saved = errno;
    char line[LINE_BYTES];
    const size_t room = sizeof line - 1; /* leaves a byte for the newline */
    size_t used = 0;
    if (stderr_is_journal()) {
        used = stored(snprintf(line, room, "<%d>", levels[level].priority), room);
    }
    const char *gap = format[0] != '\0' ? " " : "";
    used +=
        stored(snprintf(line + used, room - used, "%s %s%s", levels[level].name, event, gap), room - used);
    va_list args;
    va_start(args, format);
    used += stored(vsnprintf(line + used, room - used, format, args), room - used);
    va_end(args);
    for (size_t i = 0; i < used; i++) {
        line[i] = (unsigned char)line[i] < ' ' || line[i] == 0x7f ? ' ' : line[i];
    }
    line[used++] = '\n';
    write_line(line, used);
    errno = saved;
}
