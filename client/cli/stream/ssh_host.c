/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares connections of ssh. What authenticates a connection is the stream that it goes through: the
 * client's token, the controller's certificate and the node's token. ssh wants keys all the same: the client
 * has a pair of its own, made once, and sends the public half along; the node makes a host key for each
 * connection, which therefore is not compared with an earlier one. */
#include "client/cli/stream/ssh_host.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/common/jobs.h"
#include "client/cli/show/terminal.h"
#include "client/cli/stream/collect.h"
#include "client/cli/stream/ssh_script.h"
#include "client/cli/transport/process.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/json.h"

#define PUBLIC_KEY_BYTES 1024
#define KEYGEN_BYTES     1024

void ssh_host_finish(struct ssh_host *host)
{
    free(host->user);
    *host = (struct ssh_host){0};
}

bool ssh_host_resolve(struct api *api, const char *word, int64_t rank, struct ssh_host *ret_host,
                      struct err *err)
{
    size_t length = strlen(word), domain = strlen(SSH_DOMAIN);
    bool as_host = length > domain && strcmp(word + length - domain, SSH_DOMAIN) == 0;
    autofree char *plain = xstrndup(word, as_host ? length - domain : length);
    *ret_host = (struct ssh_host){.rank = rank};
    return resolve_rank(api, plain, ret_host->id, &ret_host->rank, err);
}

char *ssh_host_name(const struct ssh_host *host)
{
    return host->rank == 0 ? xprintf("%s" SSH_DOMAIN, host->id)
                           : xprintf("%s.%lld" SSH_DOMAIN, host->id, (long long)host->rank);
}

/* --- beside the rank ------------------------------------------------------------------------------------ */

/* NULL as the key: it looks alone. */
static json_t *command_of(const char *what, const char *public_key)
{
    json_t *command = json_array();
    json_array_append_new(command, json_string("sh"));
    json_array_append_new(command, json_string("-c"));
    json_array_append_new(command, json_stringn((const char *)ssh_script, ssh_script_length));
    json_array_append_new(command, json_string("gpuctl-ssh"));
    json_array_append_new(command, json_string(what));
    if (public_key != NULL) {
        json_array_append_new(command, json_string(public_key));
    }
    return command;
}

json_t *ssh_host_serve(const char *public_key)
{
    return command_of("serve", public_key);
}

static bool take_user(const struct collected *looked, struct ssh_host *host, bool *ret_refused,
                      struct err *err)
{
    if (looked->failed) {
        *err = looked->err;
        return false;
    }
    *ret_refused = looked->exit_code != 0 || looked->output.length == 0;
    if (*ret_refused) {
        struct terminal terminal = {0};
        return terminal_write(&terminal, stderr, looked->errors.bytes, looked->errors.length) ||
               err_errno(err, "cannot write what the node said");
    }
    host->user = xstrndup(looked->output.bytes, strcspn(looked->output.bytes, "\n\r\t \""));
    return true;
}

bool ssh_host_look(struct api *api, struct ssh_host *host, bool *ret_refused, struct err *err)
{
    struct collected looked = {.rank = host->rank};
    autojson json_t *command = command_of("look", NULL);
    bool good =
        collect_run(api, host->id, command, &looked, 1, err) && take_user(&looked, host, ret_refused, err);
    collected_finish(&looked, 1);
    return good;
}

/* --- the key of this client ----------------------------------------------------------------------------- */

/* Makes the pair in a folder of its own, which becomes the real one as a whole: of two gpuctls that begin at
 * once one is late, and uses the key of the other. */
static bool make_folder(const char *state, const char *folder, struct err *err)
{
    autofree char *made = xprintf("%s/ssh.XXXXXX", state);
    if (!file_make_directories(state, 0700, err) || mkdtemp(made) == NULL) {
        return err_errno(err, "cannot make a folder in %s", state);
    }
    autofree char *key = xprintf("%s/key", made);
    const char *const argv[] = {"ssh-keygen", "-q",     "-t", "ed25519", "-N", "",
                                "-C",         "gpuctl", "-f", key,       NULL};
    autofree char *said = process_output((char *const *)(uintptr_t)argv, KEYGEN_BYTES);
    bool good = said != NULL && (rename(made, folder) == 0 || errno == ENOTEMPTY || errno == EEXIST);
    file_remove_tree(made, NULL);
    if (!good) {
        err_set(err, ERR_IO, "ssh-keygen cannot make a key in %s", state);
        err_hint(err, "install openssh-client on this machine");
    }
    return good;
}

char *ssh_folder(struct err *err)
{
    autofree char *state = settings_state_directory();
    autofree char *folder = xprintf("%s/ssh", state);
    struct stat status;
    return stat(folder, &status) == 0 || make_folder(state, folder, err) ? give(folder) : NULL;
}

char *ssh_public_key(struct err *err)
{
    autofree char *folder = ssh_folder(err);
    autofree char *path = folder != NULL ? xprintf("%s/key.pub", folder) : NULL;
    char *key = NULL;
    if (path == NULL || !file_read(path, PUBLIC_KEY_BYTES, &key, NULL, err)) {
        return NULL;
    }
    key[strcspn(key, "\r\n")] = '\0';
    return key;
}

/* --- the settings of ssh -------------------------------------------------------------------------------- */

/* Doubles the percent signs, which ssh replaces. The caller frees it. */
static char *escape(const char *text)
{
    struct text out = {0};
    for (; *text != '\0'; text++) {
        text_append_bytes(&out, "%%", *text == '%');
        text_append_bytes(&out, text, 1);
    }
    return text_take(&out);
}

static void append_option(struct text *out, const char *name, const char *value)
{
    if (value != NULL) {
        text_printf(out, " --%s ", name);
        text_append_shell_word(out, value);
    }
}

bool ssh_append_program(const struct call *call, struct text *out, struct err *err)
{
    char own[PATH_MAX];
    autotext struct text plain = {0};
    const struct context *context = api_context(call->api);
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) {
        return err_errno(err, "cannot find the program gpuctl");
    }
    own[length] = '\0';
    text_append_shell_word(&plain, own);
    if (!context->embedded) { /* an instance of one's own has another address after each start */
        autofree char *token = file_absolute(context->token_file);
        autofree char *cacert = file_absolute(context->cacert);
        append_option(&plain, "url", context->url);
        append_option(&plain, "token-file", token);
        append_option(&plain, "cacert", cacert);
        bool http = strncmp(context->url, "http://", strlen("http://")) == 0;
        text_append(&plain, http && !context_is_loopback(context->url) ? " --insecure-plain-http" : "");
    }
    autofree char *escaped = escape(plain.bytes);
    text_append(out, escaped);
    return true;
}

static char *proxy_of(const struct call *call, const struct ssh_host *host, struct err *err)
{
    autotext struct text command = {0};
    if (!ssh_append_program(call, &command, err)) {
        return NULL;
    }
    text_printf(&command, " ssh --stdio --rank %lld %s", (long long)host->rank, host->id);
    return text_take(&command);
}

bool ssh_host_settings(const struct call *call, const struct ssh_host *host,
                       struct ssh_setting ret_settings[SSH_SETTINGS], struct err *err)
{
    autofree char *folder = ssh_folder(err);
    autofree char *escaped = folder != NULL ? escape(folder) : NULL;
    autofree char *proxy = escaped != NULL ? proxy_of(call, host, err) : NULL;
    if (proxy == NULL) {
        return false;
    }
    const struct ssh_setting settings[SSH_SETTINGS] = {
        {"User", xstrdup(host->user)},
        {"ProxyCommand", give(proxy)},
        {"IdentityFile", xprintf("\"%s/key\"", escaped)},
        {"IdentitiesOnly", xstrdup("yes")},
        {"StrictHostKeyChecking", xstrdup("no")},
        {"UserKnownHostsFile", xstrdup("/dev/null")},
        {"GlobalKnownHostsFile", xstrdup("/dev/null")},
        {"LogLevel", xstrdup("ERROR")},
        {NULL, NULL},
    };
    memcpy(ret_settings, settings, sizeof settings);
    return true;
}

void ssh_settings_finish(struct ssh_setting settings[SSH_SETTINGS])
{
    for (size_t i = 0; i < SSH_SETTINGS; i++) {
        free(settings[i].value);
    }
}
