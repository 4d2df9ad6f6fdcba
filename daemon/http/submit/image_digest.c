/* SPDX-License-Identifier: Apache-2.0 */
/* Has skopeo fetch the manifest that a tag names, and takes its SHA-256, which is its digest. For a helper
 * thread. */
#include "daemon/http/submit/image_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/base/text/log_line.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define AUTH_FD   3
#define AUTH_FILE "/dev/fd/3"
#define HINT      "or name it with its digest, name@sha256:<64 hex digits>, which needs no look"

/* Variables of the controller that skopeo gets. */
static bool is_passed(const char *variable)
{
    static const char *const starts[] = {"PATH=",       "HOME=",        "TMPDIR=",      "SSL_CERT_",
                                         "CONTAINERS_", "http_proxy=",  "https_proxy=", "no_proxy=",
                                         "HTTP_PROXY=", "HTTPS_PROXY=", "NO_PROXY="};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(variable, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static char **passed_variables(void)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **variables = xzalloc((count + 1) * sizeof *variables);
    for (size_t i = 0; i < count; i++) {
        if (is_passed(environ[i])) {
            variables[kept++] = environ[i];
        }
    }
    return variables;
}

/* A file without a name; -1 with errno. */
static int auth_file(const uint8_t *auth, size_t size)
{
    autoclose int file = memfd_create("auth", MFD_CLOEXEC);
    bool written =
        file >= 0 && (auth != NULL ? file_write_all(file, auth, size) : file_write_all(file, "{}", 2));
    return written && lseek(file, 0, SEEK_SET) == 0 ? give_fd(&file) : -1;
}

/* Starts skopeo with its outputs. */
static bool start(const char *field, const char *image, int auth, const int outputs[2], pid_t *ret_pid,
                  struct err *err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    autofree char *source = xprintf("docker://%s", image);
    autofree char **variables = passed_variables();
    const char *const arguments[] = {"skopeo", "inspect", "--raw", "--authfile", AUTH_FILE, source, NULL};
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, outputs[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, outputs[1], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, auth, AUTH_FD);
    int error = posix_spawnp(ret_pid, arguments[0], &files, &attributes, (char *const *)(uintptr_t)arguments,
                             variables);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) {
        return true;
    }
    err_field(err, ERR_FIELD, field, NULL,
              "the controller cannot run skopeo to find the digest of image %s: %s", image, strerror(error));
    return err_hint(err, "install skopeo beside gpuctld, " HINT);
}

/* One piece of an output; false: it has ended, or is longer than a manifest. */
static bool take_piece(int from, struct text *out)
{
    char piece[16 * 1024];
    ssize_t got = read(from, piece, sizeof piece);
    if (got > 0) {
        text_append_bytes(out, piece, (size_t)got);
    }
    return got > 0 && out->length <= LIMIT_MANIFEST_BYTES;
}

/* Both outputs until they have ended; false: that took too long. */
static bool take_outputs(const int from[2], struct text outs[2])
{
    struct pollfd polls[2] = {{.fd = from[0], .events = POLLIN}, {.fd = from[1], .events = POLLIN}};
    int64_t until_ms = clock_boot_ms() + IMAGE_ASK_MS;
    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        int64_t left_ms = until_ms - clock_boot_ms();
        if (left_ms <= 0 || (poll(polls, 2, (int)left_ms) < 0 && errno != EINTR)) {
            return false;
        }
        for (size_t i = 0; i < 2; i++) {
            if (polls[i].fd >= 0 && polls[i].revents != 0 && !take_piece(from[i], &outs[i])) {
                polls[i].fd = -1;
            }
        }
    }
    return true;
}

static bool refuse(const char *field, const char *image, const struct text *said, struct err *err)
{
    static const char *const refusals[] = {"manifest unknown", "name unknown", "unauthorized",
                                           "denied",           "not found",    "authentication required"};
    autofree char *message = log_line_message(said->bytes != NULL ? said->bytes : "");
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (strstr(message, refusals[i]) != NULL) {
            return err_field(err, ERR_FIELD, field,
                             "look at the name; a private image needs image_secret, the name of a secret",
                             "image %s is not there for this job: %.300s", image, message);
        }
    }
    err_field(err, ERR_UNAVAILABLE, field, NULL, "the controller cannot look at image %s: %.300s", image,
              *message != '\0' ? message : "skopeo says nothing");
    return err_hint(err, "try again, " HINT);
}

static char *with_digest(const char *image, const struct text *manifest)
{
    char digest[HASH_HEX + 1];
    hash_hex(manifest->bytes, manifest->length, digest);
    return xprintf("%s@sha256:%s", image, digest);
}

bool image_digest_find(const char *field, const char *image, const uint8_t *auth, size_t auth_size,
                       char **ret_image, struct err *err)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    autotext struct text manifest = {0};
    autotext struct text said = {0};
    struct text outs[2] = {{0}, {0}};
    autoclose int authority = auth_file(auth, auth_size);
    pid_t pid = 0;
    int status = 0;
    if (authority < 0 || pipe2(pipes[0], O_CLOEXEC) != 0) {
        return err_errno(err, "cannot start skopeo");
    }
    if (pipe2(pipes[1], O_CLOEXEC) != 0) {
        close(pipes[0][0]);
        close(pipes[0][1]);
        return err_errno(err, "cannot start skopeo");
    }
    bool started = start(field, image, authority, (const int[]){pipes[0][1], pipes[1][1]}, &pid, err);
    close(pipes[0][1]);
    close(pipes[1][1]);
    bool answered = started && take_outputs((const int[]){pipes[0][0], pipes[1][0]}, outs);
    close(pipes[0][0]);
    close(pipes[1][0]);
    manifest = outs[0];
    said = outs[1];
    if (!started) {
        return false;
    }
    if (!answered) {
        kill(-pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!answered) {
        err_field(err, ERR_UNAVAILABLE, field, NULL, "the registry of image %s does not answer within %d s",
                  image, IMAGE_ASK_MS / 1000);
        return err_hint(err, "try again, " HINT);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || manifest.length == 0 ||
        manifest.length > LIMIT_MANIFEST_BYTES) {
        return refuse(field, image, &said, err);
    }
    *ret_image = with_digest(image, &manifest);
    return true;
}
