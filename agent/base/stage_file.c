/* SPDX-License-Identifier: Apache-2.0 */
/* Makes files at given paths. Nothing is made or changed outside the folder, whatever the path contains and
 * whatever exists there. */
#include "agent/base/stage_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

static bool is_plain(const char *part)
{
    return *part != '\0' && strcmp(part, ".") != 0 && strcmp(part, "..") != 0;
}

/* What was laid before is no folder, or a link, or lets nobody in: so it would be in any folder. */
static bool is_in_the_way(int code)
{
    return code == ENOTDIR || code == ELOOP || code == EISDIR || code == EACCES || code == ENAMETOOLONG;
}

int stage_file_open(int folder, const char *path, bool executable, struct err *err)
{
    autofree char *copy = xstrdup(path);
    autoclose int at = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *rest = copy;
    char *part = strsep(&rest, "/");
    while (at >= 0 && is_plain(part) && rest != NULL) {
        mkdirat(at, part, 0755);
        int below = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(at);
        at = below;
        part = strsep(&rest, "/");
    }
    if (at >= 0 && !is_plain(part)) {
        err_set(err, ERR_FIELD, "\"%s\" is not the path of a file in the working folder", path);
        return -1;
    }
    mode_t mode = executable ? 0755 : 0644;
    int file = at < 0 ? -1 : openat(at, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file < 0) {
        bool in_the_way = is_in_the_way(errno);
        err_errno(err, "cannot make the file %s", path);
        err->code = in_the_way ? ERR_FIELD : err->code;
    }
    return file;
}

bool stage_file_write(int file, const void *bytes, size_t length, const char *path, struct err *err)
{
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(file, (const char *)bytes + done, length - done);
        if (wrote < 0) {
            return err_errno(err, "cannot write the file %s", path);
        }
        done += (size_t)wrote;
    }
    return true;
}

bool stage_file_put(const char *path, const void *bytes, size_t length, struct err *err)
{
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return file < 0 ? err_errno(err, "cannot make %s", path)
                    : stage_file_write(file, bytes, length, path, err);
}
