/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the line that an administrator gave into a working node: fetches the authority by its pin, trades the
 * join token for a token of the node's own, writes the configuration, starts the unit. A join whose answer
 * was lost can be repeated with the same line, because the drawn secret is kept until the end. A machine that
 * has joined is left unchanged. */
#include "agent/node/join.h"

#include <curl/curl.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/node_tokens.h"
#include "proto/base/http/authority.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/crypto/pin.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"
#include "proto/wire/messages.h"
#include "proto/wire/token.h"
#include "proto/wire/views.h"

#define CONFIG_BYTES (64 * 1024)
#define LINE_BYTES   4096 /* of a token on stdin */

enum { JOIN_OPTIONS = 4, ALL_OPTIONS = CONFIG_OPTIONS + JOIN_OPTIONS };

struct join {
    const char *token, *pin; /* as given, or NULL */
    bool no_start, help;
    bool named[ALL_OPTIONS]; /* given on the command line */
    struct option_spec table[ALL_OPTIONS];
    struct config config;
    struct config_given given;

    struct settings *settings; /* of the settings file, if it exists */
    char *stdin_token;         /* owned, as are the following strings */
    char *file, *token_file, *pending_file, *ca_file;
    char secret[TOKEN_SECRET_LENGTH + 1];
    char *pool; /* the pool that the controller assigns, or NULL */
    bool reserved;
    int64_t ahead_ms; /* how far the controller's clock is ahead of the clock here */
};

static void join_finish(struct join *join)
{
    explicit_bzero(join->secret, sizeof join->secret);
    options_finish_list(&join->given.labels);
    settings_destroy(join->settings);
    config_finish(&join->config);
    free(join->stdin_token);
    free(join->file);
    free(join->token_file);
    free(join->pending_file);
    free(join->ca_file);
    free(join->pool);
}

/* --- the command line ----------------------------------------------------------------------------------- */

static void table_fill(struct join *join)
{
    const struct option_spec own[JOIN_OPTIONS] = {
        {.name = "token",
         .value_name = "TOKEN",
         .help = "the join token; - reads it from stdin",
         .kind = OPTION_TEXT,
         .target = &join->token},
        {.name = "ca-pin",
         .value_name = "PIN",
         .help = "of the certificate authority (default: the certificates that the system trusts)",
         .kind = OPTION_TEXT,
         .target = &join->pin},
        {.name = "no-start",
         .help = "do not start the agent, but say how",
         .kind = OPTION_FLAG,
         .target = &join->no_start},
        {.letter = 'h', .name = "help", .help = "show this", .kind = OPTION_FLAG, .target = &join->help},
    };
    size_t count = 0;
    struct option_spec agent[CONFIG_OPTIONS];
    config_table(&join->config, &join->given, agent);
    memcpy(join->table, own, sizeof own);
    for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
        bool wanted = !agent[i].command_line_only || strcmp(agent[i].name, "config") == 0;
        if (wanted && strcmp(agent[i].name, "controller") != 0) {
            join->table[JOIN_OPTIONS + count++] = agent[i];
        }
    }
    while (JOIN_OPTIONS + count < ALL_OPTIONS) { /* the empty rest is never written */
        join->table[JOIN_OPTIONS + count++] = (struct option_spec){.name = "", .help = ""};
    }
}

static size_t option_count(const struct join *join)
{
    size_t count = 0;
    while (count < ALL_OPTIONS && join->table[count].name[0] != '\0') {
        count++;
    }
    return count;
}

static bool read_stdin(struct join *join, struct err *err)
{
    char line[LINE_BYTES] = "";
    if (strcmp(join->token, "-") != 0) {
        return true;
    }
    if (fgets(line, sizeof line, stdin) == NULL) {
        return err_set(err, ERR_USAGE, "there is no token on stdin");
    }
    line[strcspn(line, " \t\r\n")] = '\0';
    join->stdin_token = xstrdup(line);
    join->token = join->stdin_token;
    return true;
}

static bool read_command_line(struct join *join, int argc, char **argv, struct err *err)
{
    autofree char **rest = NULL;
    size_t rest_count = 0, count = option_count(join);
    if (!options_parse(join->table, count, argc, argv, false, join->named, &rest, &rest_count, err)) {
        return false;
    }
    if (join->help) {
        options_help(
            stdout, "gpuagent join URL --token TOKEN [--ca-pin PIN] [OPTIONS]",
            "Makes this machine a node: trades the token for one of the node's own, writes "
            "agent.conf, and starts the agent.\nThe line comes from gpuctl nodes join-command. Other "
            "options of gpuagent are written into agent.conf.",
            join->table, count);
        return true;
    }
    if (rest_count != 1 || join->token == NULL) {
        err_set(err, ERR_USAGE, "gpuagent join needs the URL of a controller and --token");
        return err_hint(err, "run the line that gpuctl nodes join-command prints");
    }
    if (join->config.ephemeral) {
        return err_field(err, ERR_USAGE, "--ephemeral",
                         "start gpuagent --ephemeral with the token of gpuctl token create --role node",
                         "a node that joins has a token of its own, which would go with it");
    }
    join->config.url = rest[0];
    return read_stdin(join, err) && (join->pin == NULL || pin_check_form(join->pin, "--ca-pin", err)) &&
           config_check(&join->config, err);
}

/* --- what is there already ------------------------------------------------------------------------------ */

static bool place_files(struct join *join)
{
    join->file = join->given.file != NULL ? file_absolute(join->given.file) : settings_place(SETTINGS_AGENT);
    autofree char *folder = file_folder_of(join->file);
    join->token_file = join->config.token_file != NULL ? file_absolute(join->config.token_file)
                                                       : xprintf("%s/node.token", folder);
    join->pending_file = xprintf("%s.joining", join->token_file);
    join->ca_file =
        join->given.cacert != NULL ? file_absolute(join->given.cacert) : xprintf("%s/node-ca.pem", folder);
    return true;
}

/* Whether the machine has joined this controller already; an error if it has joined another one. */
static bool find_joined(struct join *join, bool *ret_joined, struct err *err)
{
    struct config config;
    struct config_given given = {0};
    struct option_spec table[CONFIG_OPTIONS];
    *ret_joined = false;
    if (access(join->file, F_OK) != 0) {
        return true;
    }
    config_defaults(&config);
    config_table(&config, &given, table);
    join->settings = settings_load(SETTINGS_AGENT, join->file, err);
    bool read = join->settings != NULL && settings_apply(join->settings, table, CONFIG_OPTIONS, NULL, err);
    options_finish_list(&given.labels);
    if (!read || !settings_says(join->settings, "controller", "url")) {
        return read;
    }
    if (strcmp(config.url, join->config.url) != 0) {
        err_set(err, ERR_CONFLICT, "%s says that this machine is a node of %s", join->file, config.url);
        return err_hint(err, "remove that file first, or write another one with --config");
    }
    *ret_joined = access(join->token_file, F_OK) == 0;
    return true;
}

/* An option given here must not be in the file already. */
static bool check_named(struct join *join, struct err *err)
{
    for (size_t i = JOIN_OPTIONS; join->settings != NULL && i < option_count(join); i++) {
        const struct option_spec *spec = &join->table[i];
        if (join->named[i] && settings_says(join->settings, spec->name, spec->alias)) {
            err_set(err, ERR_CONFLICT, "%s sets %s already", join->file, spec->name);
            return err_hint(err, "leave --%s out, or remove that line of the file", spec->name);
        }
    }
    return true;
}

/* --- the trade ------------------------------------------------------------------------------------------ */

/* Keeps the same secret until the join is complete: it shows the controller that the same node asks. */
static bool draw_secret(struct join *join, struct err *err)
{
    uint8_t random[TOKEN_SECRET_RANDOM];
    autofree char *kept = NULL, *folder = file_folder_of(join->token_file),
                  *config_folder = file_folder_of(join->file);
    size_t length;
    if (access(join->pending_file, F_OK) == 0) {
        if (!file_read(join->pending_file, LINE_BYTES, &kept, &length, err)) {
            return false;
        }
        if (length == TOKEN_SECRET_LENGTH) {
            memcpy(join->secret, kept, TOKEN_SECRET_LENGTH + 1);
            return true;
        }
    }
    random_fill(random, sizeof random);
    token_secret_make(random, join->secret);
    return file_make_directories(folder, 0755, err) && file_make_directories(config_folder, 0755, err) &&
           file_replace(join->pending_file, join->secret, TOKEN_SECRET_LENGTH, 0600, err);
}

static bool fetch_authority(struct join *join, struct err *err)
{
    autofree char *pem = NULL;
    if (join->pin == NULL) {
        return true;
    }
    return authority_fetch(join->config.url, join->pin, &pem, &join->ahead_ms, err) &&
           file_replace(join->ca_file, pem, strlen(pem), 0644, err);
}

/* Whether certificates other than the system's are used. */
static bool has_authority(const struct join *join)
{
    return join->pin != NULL || join->given.cacert != NULL;
}

static bool explain(const struct join *join, struct err *err)
{
    if (err->code != ERR_UNAUTHENTICATED) {
        return err_hint(err,
                        "see that gpuctld serves there, then repeat this: the token is as good as before");
    }
    err_hint(err, join->pin != NULL
                      ? "add the name of the URL to host-name in controller.conf, and restart gpuctld"
                      : "give --ca-pin, as gpuctl nodes join-command prints it");
    authority_blame_clock(join->ahead_ms, err);
    return false;
}

/* One try; the caller frees the JSON of the answer. *ret_again_ms: see contact_reply. */
static json_t *post(const struct join *join, const char *body, int64_t *ret_again_ms, struct err *err)
{
    const struct contact contact = {.url = join->config.url,
                                    .path = "/v1/agent/join",
                                    .body = body,
                                    .cacert = has_authority(join) ? join->ca_file : NULL,
                                    .user_agent = "gpuagent/" GPUCTL_VERSION};
    struct contact_reply reply;
    bool answered = contact_send(&contact, &reply, err) || explain(join, err);
    size_t length = reply.body.length;
    autofree char *text = text_take(&reply.body);
    *ret_again_ms = reply.again_ms;
    if (answered && reply.status / 100 != 2) {
        problem_decode(text, length, (int)reply.status, err);
    }
    return answered && reply.status / 100 == 2 ? json_parse(text, length, err) : NULL;
}

/* Tries again while the controller cannot be reached or has too much to do: the same request has the same
 * answer. */
static json_t *post_again(const struct join *join, const char *body, struct err *err)
{
    int64_t deadline = clock_boot_ms() + CLIENT_RETRY_MS;
    for (int64_t pause_ms = CLIENT_BACKOFF_MS;; pause_ms *= 2) {
        int64_t again_ms;
        json_t *json = post(join, body, &again_ms, err);
        int64_t wait_ms = again_ms > pause_ms ? again_ms : pause_ms;
        if (json != NULL || !err_retryable(err->code) || clock_boot_ms() + wait_ms > deadline) {
            return json;
        }
        usleep((useconds_t)(wait_ms * 1000));
    }
}

static bool trade(struct join *join, char **ret_token, struct err *err)
{
    struct join_message message = {.token = join->token, .name = join->config.name};
    struct join_reply reply;
    hash_bytes(join->secret, TOKEN_SECRET_LENGTH, message.secret);
    autojson json_t *sent = join_message_encode(&message);
    autofree char *body = json_text(sent);
    json_t *json = post_again(join, body, err);
    explicit_bzero(body, strlen(body));
    if (json == NULL || !join_reply_decode(json, &reply, err)) {
        return false;
    }
    *ret_token = xprintf(TOKEN_PREFIX "%s_%s", reply.token_id, join->secret);
    join->pool = reply.pool != NULL ? xstrdup(reply.pool) : NULL;
    join->reserved = reply.reserved;
    join_reply_finish(&reply);
    return true;
}

/* --- what is kept --------------------------------------------------------------------------------------- */

/* The join token decides the pool, if it names one. */
static bool settle_pool(struct join *join, struct err *err)
{
    if (join->pool != NULL && join->config.pool != NULL && strcmp(join->pool, join->config.pool) != 0) {
        err_field(err, ERR_CONFLICT, "--pool", NULL, "the join token is for pool %s, not %s", join->pool,
                  join->config.pool);
        return err_hint(err, "leave --pool out, or make a token for that pool");
    }
    return true;
}

static bool is_written_apart(const struct option_spec *spec)
{
    static const char *const names[] = {"config", "token-file", "cacert", "name"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(spec->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool write_config(const struct join *join, struct err *err)
{
    autofree char *before = NULL;
    autotext struct text text = {0};
    if (access(join->file, F_OK) == 0 && !file_read(join->file, CONFIG_BYTES, &before, NULL, err)) {
        return false;
    }
    text_append(&text, before != NULL
                           ? before
                           : "# Settings of gpuagent; docs/reference/configuration.md lists them.\n");
    text_printf(&text, "controller = %s\ntoken-file = %s\nname = %s\n", join->config.url, join->token_file,
                join->config.name);
    if (has_authority(join)) {
        text_printf(&text, "cacert = %s\n", join->ca_file);
    }
    if (join->pool != NULL && join->config.pool == NULL) {
        text_printf(&text, "pool = %s\n", join->pool);
    }
    if (join->reserved && !join->config.reserved) {
        text_append(&text, "reserved = true\n");
    }
    for (size_t i = JOIN_OPTIONS; i < option_count(join); i++) {
        if (join->named[i] && !is_written_apart(&join->table[i])) {
            settings_write(&join->table[i], &text);
        }
    }
    return file_replace(join->file, text.bytes, text.length, 0644, err);
}

static bool keep(struct join *join, const char *token, struct err *err)
{
    bool kept =
        settle_pool(join, err) && node_tokens_begin(join->token_file, token, err) && write_config(join, err);
    if (kept) {
        unlink(join->pending_file);
    }
    return kept;
}

/* --- the unit ------------------------------------------------------------------------------------------- */

static bool any_exists(const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (access(paths[i], F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether systemd runs and knows the unit of the agent. */
static bool has_unit(void)
{
    static const char *const system[] = {"/etc/systemd/system/gpuagent.service",
                                         "/usr/lib/systemd/system/gpuagent.service",
                                         "/lib/systemd/system/gpuagent.service"};
    static const char *const user[] = {"/usr/lib/systemd/user/gpuagent.service",
                                       "/etc/systemd/user/gpuagent.service"};
    if (geteuid() == 0) {
        return access("/run/systemd/system", F_OK) == 0 &&
               any_exists(system, sizeof system / sizeof system[0]);
    }
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    autofree char *bus = xprintf("%s/systemd", runtime != NULL ? runtime : "/nowhere");
    return access(bus, F_OK) == 0 && any_exists(user, sizeof user / sizeof user[0]);
}

static bool run(char *const words[], struct err *err)
{
    extern char **environ;
    pid_t pid;
    int status = -1;
    int code = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
    if (code != 0) {
        errno = code;
        return err_errno(err, "cannot run %s", words[0]);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           err_set(err, ERR_IO, "%s %s failed", words[0], words[1]);
}

static bool start_unit(struct err *err)
{
    char systemctl[] = "systemctl", user[] = "--user", enable[] = "enable", now[] = "--now",
         unit[] = "gpuagent.service";
    char *as_root[] = {systemctl, enable, now, unit, NULL};
    char *as_user[] = {systemctl, user, enable, now, unit, NULL};
    if (run(geteuid() == 0 ? as_root : as_user, err)) {
        puts("the agent is started; journalctl shows what it does");
        return true;
    }
    return err_hint(err, "the machine has joined; see systemctl status gpuagent");
}

static bool start(const struct join *join, struct err *err)
{
    bool unit = join->given.file == NULL && has_unit();
    if (unit && !join->no_start) {
        return start_unit(err);
    }
    if (unit) {
        printf("start it: systemctl %senable --now gpuagent\n", geteuid() == 0 ? "" : "--user ");
    } else if (join->given.file == NULL) {
        puts("start it: gpuagent");
    } else {
        printf("start it: gpuagent --config %s\n", join->file);
    }
    return true;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static bool join_once(struct join *join, bool (*look)(struct config *config, struct err *err),
                      struct err *err)
{
    autofree char *token = NULL;
    bool traded = check_named(join, err) && look(&join->config, err) && draw_secret(join, err) &&
                  fetch_authority(join, err) && trade(join, &token, err);
    bool good = traded && keep(join, token, err);
    if (token != NULL) {
        explicit_bzero(token, strlen(token));
    }
    if (good) {
        printf("joined %s as %s\n  configuration  %s\n  token          %s\n", join->config.url,
               join->config.name, join->file, join->token_file);
    }
    return good;
}

bool join_run(int argc, char **argv, bool (*look)(struct config *config, struct err *err), struct err *err)
{
    struct join join = {0};
    bool joined = false;
    config_defaults(&join.config);
    table_fill(&join);
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    bool good = read_command_line(&join, argc, argv, err);
    if (good && !join.help) {
        good = place_files(&join) && find_joined(&join, &joined, err);
        if (good && joined) {
            printf("this machine is a node of %s already: %s\n", join.config.url, join.file);
        }
        good = good && (joined || join_once(&join, look, err)) && start(&join, err);
    }
    join_finish(&join);
    curl_global_cleanup();
    return good;
}
