/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a tar of this machine to one beside a rank. What comes from a job is not trusted: the tar here makes
 * no devices, gives no file to another owner, and unpacks into a folder of its own, out of which the one
 * thing that was asked for is taken. */
#include "client/cli/files/live.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/stream/session.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define NOT_STARTED 127

/* --- the tar of this machine ---------------------------------------------------------------------------- */

/* Starts it with one end of a pipe as its stdin or stdout; *ret_end is the other one. -1 on failure. */
static pid_t start_tar(const char *const *words, int number, int *ret_end, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        err_errno(err, "cannot make a pipe");
        return -1;
    }
    autoclose int theirs = ends[number == STDIN_FILENO ? 0 : 1];
    *ret_end = ends[number == STDIN_FILENO ? 1 : 0];
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_CAPBSET_DROP, CAP_MKNOD);
        signal(SIGPIPE, SIG_DFL);
        dup2(theirs, number);
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(NOT_STARTED);
    }
    if (pid < 0) {
        err_errno(err, "cannot start tar");
        cleanup_close(ret_end);
        *ret_end = -1;
    }
    return pid;
}

static bool await_tar(pid_t pid, struct err *err)
{
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED) {
        return err_field(err, ERR_IO, NULL, "install tar", "there is no tar on this machine");
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           err_set(err, ERR_IO, "tar failed on this machine");
}

/* --- the one beside the rank ---------------------------------------------------------------------------- */

static json_t *script(const char *what, const struct live *live, const char *name)
{
    const char *path = *live->path != '\0' ? live->path : ".";
    return json_pack("[s, s, s%, s, s, s, s*]", "sh", "-c", (const char *)copy_script, copy_script_length,
                     "gpuctl-cp", what, path, name);
}

static bool run(struct api *api, const struct live *live, struct session_request *request, struct err *err)
{
    int code = 0;
    request->job_id = live->job_id;
    request->rank = live->rank;
    request->interruptible = true;
    return session_run(api, request, &code, err) &&
           (code == 0 || err_set(err, ERR_CONFLICT, "copying failed beside rank %lld (exit code %d)",
                                 (long long)live->rank, code));
}

/* --- there ---------------------------------------------------------------------------------------------- */

bool live_put(struct api *api, const struct live *live, const char *source, struct err *err)
{
    autofree char *real = realpath(source, NULL);
    if (real == NULL) {
        return err_errno(err, "cannot copy %s", source);
    }
    const char *name = strrchr(real, '/') + 1;
    if (*name == '\0') {
        return err_set(err, ERR_USAGE, "the whole file system is more than can be copied");
    }
    autofree char *folder = file_folder_of(real);
    const char *const words[] = {"tar", "-c", "-C", folder, "-f", "-", "--", name, NULL};
    autojson json_t *command = script("in", live, name);
    int from = -1;
    pid_t pid = start_tar(words, STDOUT_FILENO, &from, err);
    if (pid < 0) {
        return false;
    }
    struct session_request request = {.command = command, .input = true, .from = from};
    bool good = run(api, live, &request, err);
    cleanup_close(&from);
    struct err failed;
    bool packed = await_tar(pid, good ? err : &failed);
    return good && packed;
}

/* --- here ----------------------------------------------------------------------------------------------- */

static bool unpack(struct api *api, const struct live *live, const char *folder, struct err *err)
{
    const char *const words[] = {"tar", "-x", "--no-same-owner", "--no-same-permissions", "-C", folder, "-f",
                                 "-",   NULL};
    autojson json_t *command = script("out", live, NULL);
    int to = -1;
    pid_t pid = start_tar(words, STDIN_FILENO, &to, err);
    if (pid < 0) {
        return false;
    }
    signal(SIGPIPE, SIG_IGN);
    FILE *file = fdopen(to, "w");
    struct session_request request = {.command = command, .to = file};
    bool good = run(api, live, &request, err);
    if (!good) {
        kill(pid, SIGTERM); /* an archive that breaks off is no news of its own */
    }
    bool written = fclose(file) == 0;
    struct err failed;
    bool unpacked = await_tar(pid, good ? err : &failed);
    return good && unpacked && (written || err_errno(err, "cannot write to tar"));
}

/* *ret_mode: of a folder. */
static bool is_folder(const char *path, mode_t *ret_mode)
{
    struct stat status = {0};
    bool found = lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
    *ret_mode = status.st_mode & 07777;
    return found;
}

/* Replaces what is there; what is in a folder goes into one that is there. Links are not followed. */
static bool move_to(const char *path, const char *target, struct err *err)
{
    autonames struct file_names names = {0};
    mode_t mode, ignored;
    bool folder = is_folder(path, &mode);
    if (folder && chmod(path, mode | S_IRWXU) != 0) { /* nothing leaves a folder that cannot be written */
        return err_errno(err, "cannot move %s", path);
    }
    if (!folder || !is_folder(target, &ignored)) {
        return (rename(path, target) == 0 && (!folder || chmod(target, mode) == 0)) ||
               err_errno(err, "cannot make %s", target);
    }
    bool good = file_list(path, &names, err);
    for (size_t i = 0; good && i < names.count; i++) {
        autofree char *from = xprintf("%s/%s", path, names.items[i]);
        autofree char *to = xprintf("%s/%s", target, names.items[i]);
        good = move_to(from, to, err);
    }
    return good;
}

/* The name of the path's end; NULL where only the rank knows it, as of "." and "..". The caller's. */
static char *name_of(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    autofree char *name = xstrndup(path + begin, end - begin);
    bool known = *name != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    return known ? give(name) : NULL;
}

/* The folder is the person's own: nothing in it becomes another thing but what was asked for. A name that the
 * rank chose replaces nothing. */
static bool move_into(const char *path, const char *came, const char *wanted, const char *folder,
                      struct err *err)
{
    struct stat status;
    autofree char *target = xprintf("%s/%s", folder, came);
    if (wanted != NULL && strcmp(wanted, came) != 0) {
        return err_set(err, ERR_MALFORMED, "%s came where %s was to be copied", came, wanted);
    }
    if (wanted == NULL && lstat(target, &status) == 0) {
        err_set(err, ERR_CONFLICT, "there is a %s already", target);
        return err_hint(err, "name the folder of the rank by its path, or a target that is not there yet");
    }
    return move_to(path, target, err);
}

/* The one thing in the folder gets the name, or goes into the target. */
static bool take_one(const struct live *live, const char *folder, const char *target, bool into,
                     struct err *err)
{
    autonames struct file_names names = {0};
    if (!file_list(folder, &names, err)) {
        return false;
    }
    if (names.count != 1) {
        return err_set(err, ERR_MALFORMED, "%zu things came where one was to be copied", names.count);
    }
    autofree char *path = xprintf("%s/%s", folder, names.items[0]);
    autofree char *wanted = name_of(live->path);
    return into ? move_into(path, names.items[0], wanted, target, err) : move_to(path, target, err);
}

/* From now on the session hears of them, and what is half done is removed. */
static void hold_signals(void)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigprocmask(SIG_BLOCK, &held, NULL);
}

/* Beside its place first, so that it is there as a whole or not at all. */
static bool get(struct api *api, const struct live *live, const char *target, bool into, struct err *err)
{
    struct err ignored;
    autofree char *folder = into ? xstrdup(target) : file_folder_of(target);
    autofree char *part = xprintf("%s/.gpuctl-XXXXXX", folder);
    hold_signals();
    if (mkdtemp(part) == NULL) {
        return err_errno(err, "cannot write to the folder of %s", target);
    }
    bool good = unpack(api, live, part, err) && take_one(live, part, target, into, err);
    file_remove_tree(part, &ignored);
    return good;
}

static bool show(struct api *api, const struct live *live, struct err *err)
{
    autojson json_t *command = json_pack("[s, s, s]", "cat", "--", live->path);
    struct session_request request = {.command = command};
    return run(api, live, &request, err);
}

bool live_get(struct api *api, const struct live *live, const char *target, struct err *err)
{
    struct stat status;
    if (strcmp(target, "-") == 0) {
        return show(api, live, err);
    }
    return get(api, live, target, stat(target, &status) == 0 && S_ISDIR(status.st_mode), err);
}
