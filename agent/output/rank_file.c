/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files that ranks left behind, and reads their last messages. It follows no link and opens only plain
 * files with a single name. A file that shrinks meanwhile counts as missing. A message is one line of
 * printable UTF-8. results.c decides which files matter. */
#include "agent/output/rank_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define SAID_FILE_BYTES (256 * KIB) /* an error file up to this size is parsed, in about 1 ms */

/* --- files ---------------------------------------------------------------------------------------------- */

/* Without O_NONBLOCK a pipe of that name would block the agent. A file with a second name may be a file of
 * the host that the rank itself could not read. */
int rank_file_open(const char *logs, const char *folder, const char *name, int64_t *ret_size)
{
    autofree char *path = xprintf("%s/%s", logs, folder != NULL ? folder : ".");
    autoclose int place = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int file =
        place >= 0 ? openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
        return -1;
    }
    *ret_size = (int64_t)status.st_size;
    return give_fd(&file);
}

char *rank_file_read(const char *logs, const char *folder, const char *name, int64_t max, size_t *ret_length)
{
    int64_t size;
    autoclose int file = rank_file_open(logs, folder, name, &size);
    if (file < 0 || size > max) {
        return NULL;
    }
    autofree char *bytes = xalloc((size_t)size + 1);
    for (int64_t done = 0; done < size;) {
        ssize_t got = read(file, bytes + done, (size_t)(size - done));
        if (got <= 0) {
            return NULL;
        }
        done += got;
    }
    bytes[size] = '\0';
    if (ret_length != NULL) {
        *ret_length = (size_t)size;
    }
    return give(bytes);
}

/* --- last words ----------------------------------------------------------------------------------------- */

/* torch writes {"message": {"message": text, ...}}; some programs write {"message": text}. */
static const char *message_of(const json_t *file)
{
    const json_t *message = json_object_get(file, "message");
    return json_string_value(json_is_object(message) ? json_object_get(message, "message") : message);
}

/* Cuts a text that is too long before the first character that does not fit. */
static size_t cut(const char *line, size_t length)
{
    size_t most = LIMIT_SAID_BYTES;
    if (length <= most) {
        return length;
    }
    while (most > 0 && ((unsigned char)line[most] & 0xc0) == 0x80) {
        most--;
    }
    return most;
}

static char *first_line(const char *message)
{
    message += strspn(message, " \t\r\n");
    size_t length = cut(message, strcspn(message, "\r\n"));
    while (length > 0 && message[length - 1] == ' ') {
        length--;
    }
    if (length == 0) {
        return NULL;
    }
    char *line = xstrndup(message, length);
    for (char *at = line; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' || *at == '\x7f' ? ' ' : *at;
    }
    return line;
}

char *rank_file_note(const char *logs, int64_t rank)
{
    autofree char *name = xprintf("%lld" SHIM_NOTE_ENDING, (long long)rank);
    autofree char *bytes = rank_file_read(logs, SHIM_ERRORS_FOLDER, name, SAID_FILE_BYTES, NULL);
    return bytes != NULL ? first_line(bytes) : NULL;
}

char *rank_file_error(const char *logs, int64_t rank)
{
    autofree char *name = xprintf("%lld.json", (long long)rank);
    size_t length;
    autofree char *bytes = rank_file_read(logs, SHIM_ERRORS_FOLDER, name, SAID_FILE_BYTES, &length);
    autojson json_t *file = bytes != NULL ? json_parse(bytes, length, NULL) : NULL;
    const char *message = message_of(file);
    return message != NULL ? first_line(message) : NULL;
}
