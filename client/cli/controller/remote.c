/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs of other people, such as ssh. It promises that a program can read the whole input, and that
 * its output is there when it has ended, without a pipe that somebody must serve. */
#include "client/cli/controller/remote.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define SHOWN_BYTES (64 * 1024) /* of what a program writes: the end of it says why it failed */

static int memory_file(const char *content, struct err *err)
{
    autoclose int fd = memfd_create("remote", MFD_CLOEXEC);
    size_t length = content != NULL ? strlen(content) : 0;
    if (fd < 0 || (length > 0 && write(fd, content, length) != (ssize_t)length) ||
        lseek(fd, 0, SEEK_SET) != 0) {
        err_errno(err, "cannot make a file in memory");
        return -1;
    }
    return give_fd(&fd);
}

bool remote_start(char *const *argv, const char *input, struct remote *ret_remote, struct err *err)
{
    extern char **environ;
    autoclose int in = memory_file(input, err), output = in >= 0 ? memory_file(NULL, err) : -1,
                  errors = output >= 0 ? memory_file(NULL, err) : -1;
    if (errors < 0) {
        return false;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    int code = posix_spawnp(&ret_remote->pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0) {
        errno = code;
        err_errno(err, "cannot run %s", argv[0]);
        return err_hint(err, "install the OpenSSH client");
    }
    ret_remote->output = give_fd(&output);
    ret_remote->errors = give_fd(&errors);
    return true;
}

/* The end of the file; closes it. */
static void take(int fd, struct text *out)
{
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > SHOWN_BYTES ? size - SHOWN_BYTES : 0;
    char bytes[4096];
    for (ssize_t got; (got = pread(fd, bytes, sizeof bytes, from)) > 0; from += got) {
        text_append_bytes(out, bytes, (size_t)got);
    }
    close(fd);
}

int remote_wait(struct remote *remote, struct text *output, struct text *errors)
{
    int status = 0;
    while (waitpid(remote->pid, &status, 0) < 0 && errno == EINTR) {
    }
    take(remote->output, output);
    take(remote->errors, errors);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
