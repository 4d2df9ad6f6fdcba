/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a controller: state folder, certificate authority, certificate, administrator's token,
 * configuration file. Existing files stay as they are. Files that root makes in a state folder belong to the
 * owner of that folder. The controller makes the same files itself if they are missing; this command also
 * shows the next steps. */
#include "daemon/init.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/admin_token.h"
#include "daemon/backup/backup.h"
#include "daemon/config.h"
#include "daemon/home.h"
#include "daemon/host_names.h"
#include "daemon/store/store.h"
#include "daemon/tls.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/settings/options.h"
#include "proto/base/crypto/pin.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/text.h"

#define SYSTEM_STATE  "/var/lib/gpuctl"
#define SYSTEM_USER   "gpuctl" /* the user of the package's unit */
#define SYSTEM_LISTEN "0.0.0.0:7070"
#define CONFIG_BYTES  (64 * 1024)

struct init {
    const char *state, *listen, *file; /* as given, or NULL */
    struct option_list given_names;
    bool help;

    char *config_path;    /* owned */
    struct config config; /* the file's content, written or read */
    struct host_list names;
    struct tls tls;
    bool wrote_config, made_token;
};

enum { OPTION_COUNT = 5 };

static void table_fill(struct init *init, struct option_spec table[OPTION_COUNT])
{
    const struct option_spec filled[OPTION_COUNT] = {
        {.name = "state",
         .value_name = "DIR",
         .help = "folder of everything that is kept (default of root: " SYSTEM_STATE ")",
         .kind = OPTION_TEXT,
         .target = &init->state},
        {.name = "listen",
         .value_name = "HOST:PORT",
         .help = "where to serve (default " SYSTEM_LISTEN ")",
         .kind = OPTION_TEXT,
         .target = &init->listen},
        {.name = "name",
         .value_name = "HOST",
         .help = "a name or address by which others reach this host; may be repeated (default: those found)",
         .kind = OPTION_LIST,
         .target = &init->given_names,
         .alias = "host-name"},
        {.name = "config",
         .value_name = "FILE",
         .help = "the file to write (default of root: /etc/gpuctl/" SETTINGS_CONTROLLER ")",
         .kind = OPTION_TEXT,
         .target = &init->file},
        {.letter = 'h', .name = "help", .help = "show this", .kind = OPTION_FLAG, .target = &init->help},
    };
    memcpy(table, filled, sizeof filled);
}

/* --- the configuration ---------------------------------------------------------------------------------- */

/* Reads a configuration as the controller would. */
static bool read_config(struct init *init, struct err *err)
{
    char program[] = "gpuctld", option[] = "--config";
    char *words[] = {program, option, init->config_path, NULL};
    config_finish(&init->config);
    return config_parse(3, words, &init->config, err);
}

/* A file that sets nothing, such as one with only comments, may be extended. */
static bool sets_something(const char *path, bool *ret_sets, struct err *err)
{
    *ret_sets = false;
    if (access(path, F_OK) != 0) {
        return true;
    }
    autosettings struct settings *settings = settings_load(SETTINGS_CONTROLLER, path, err);
    *ret_sets = settings != NULL && settings_any(settings);
    return settings != NULL;
}

static bool refuse_other(const char *option, const char *given, const char *said, const char *path,
                         struct err *err)
{
    err_field(err, ERR_CONFLICT, option, NULL, "%s says %s already, not %s", path, said, given);
    return err_hint(err, "leave %s out, or change that line of the file yourself", option);
}

static bool append_config(struct init *init, const char *state, const char *listen, struct err *err)
{
    autofree char *before = NULL, *folder = file_folder_of(init->config_path);
    autotext struct text text = {0};
    if (access(init->config_path, F_OK) == 0 &&
        !file_read(init->config_path, CONFIG_BYTES, &before, NULL, err)) {
        return false;
    }
    text_append(&text, before != NULL
                           ? before
                           : "# Settings of gpuctld; docs/reference/configuration.md lists them.\n");
    text_printf(&text, "state = %s\nlisten = %s\nhost-name = ", state, listen);
    for (size_t i = 0; i < init->names.count; i++) {
        text_printf(&text, "%s%s", i > 0 ? ", " : "", init->names.items[i]);
    }
    text_append(&text, "\n");
    init->wrote_config = true;
    return file_make_directories(folder, 0755, err) &&
           file_replace(init->config_path, text.bytes, text.length, 0644, err);
}

static void find_names(struct init *init)
{
    for (size_t i = 0; i < init->given_names.count; i++) {
        host_list_add(&init->names, init->given_names.items[i]);
    }
    if (init->names.count == 0) {
        host_list_find(&init->names);
    }
}

static char *usual_state(void)
{
    autofree char *user = settings_state_directory();
    return geteuid() == 0 ? xstrdup(SYSTEM_STATE) : xprintf("%s/controller", user);
}

/* Settings in an existing file apply, and the options must not contradict them. */
static bool open_config(struct init *init, struct err *err)
{
    autofree char *state = init->state != NULL ? file_absolute(init->state) : usual_state();
    const char *listen = init->listen != NULL ? init->listen : SYSTEM_LISTEN;
    bool says;
    init->config_path = init->file != NULL ? file_absolute(init->file) : settings_place(SETTINGS_CONTROLLER);
    if (!sets_something(init->config_path, &says, err)) {
        return false;
    }
    if (!says) {
        find_names(init);
    }
    if ((!says && !append_config(init, state, listen, err)) || !read_config(init, err)) {
        return false;
    }
    for (size_t i = 0; says && i < init->config.host_names.count; i++) {
        host_list_add(&init->names, init->config.host_names.items[i]);
    }
    if (init->names.count == 0) {
        find_names(init);
    }
    if (init->state != NULL && strcmp(state, init->config.state) != 0) {
        return refuse_other("--state", state, init->config.state, init->config_path, err);
    }
    return init->listen == NULL || strcmp(listen, init->config.listen) == 0 ||
           refuse_other("--listen", listen, init->config.listen, init->config_path, err);
}

/* --- the state ------------------------------------------------------------------------------------------ */

/* Root works in another user's folder as that user, so that the files belong to that user. */
static bool become_owner(const char *state, struct err *err)
{
    struct stat status;
    const struct passwd *user = strcmp(state, SYSTEM_STATE) == 0 ? getpwnam(SYSTEM_USER) : NULL;
    bool there = stat(state, &status) == 0;
    if (geteuid() != 0) {
        return true;
    }
    if (!there) {
        if (!file_make_directories(state, 0700, err)) {
            return false;
        }
        if (user != NULL && chown(state, user->pw_uid, user->pw_gid) != 0) {
            return err_errno(err, "cannot give %s to %s", state, SYSTEM_USER);
        }
        if (stat(state, &status) != 0) {
            return err_errno(err, "cannot look at %s", state);
        }
    }
    if (status.st_uid == 0) {
        return true;
    }
    if (setgroups(0, NULL) != 0 || setgid(status.st_gid) != 0 || setuid(status.st_uid) != 0) {
        return err_errno(err, "cannot become the owner of %s", state);
    }
    return true;
}

/* The controller reports these folders as missing if they do not exist after the first start. */
static bool make_folders(const char *state, struct err *err)
{
    autofree char *logs = xprintf("%s/logs", state), *blobs = xprintf("%s/blobs", state);
    return file_make_directories(logs, 0700, err) && file_make_directories(blobs, 0700, err);
}

/* A running controller has its token already, and it locks the database. */
static bool make_token(struct init *init, struct err *err)
{
    autofree char *token = xprintf("%s/" ADMIN_TOKEN_FILE, init->config.state);
    autofree char *database = xprintf("%s/" BACKUP_DATABASE, init->config.state);
    if (access(token, F_OK) == 0 && access(database, F_OK) == 0) {
        return true;
    }
    autoclose int lock = home_lock(init->config.state, err);
    struct store *store = lock >= 0 ? store_open(database, err) : NULL;
    bool made = store != NULL && admin_token_first(store, init->config.state, err);
    store_close(store);
    init->made_token = made;
    return made && make_folders(init->config.state, err);
}

static bool make_state(struct init *init, struct err *err)
{
    return become_owner(init->config.state, err) &&
           (init->config.tls_certificate != NULL || init->config.insecure_plain_http ||
            tls_open(init->config.state, (const char *const *)init->names.items, init->names.count,
                     clock_wall_ms(), &init->tls, err)) &&
           make_token(init, err);
}

/* --- output for people ---------------------------------------------------------------------------------- */

static void tell_start(const struct init *init)
{
    bool usual = init->file == NULL;
    bool unit =
        access("/run/systemd/system", F_OK) == 0 && access("/lib/systemd/system/gpuctld.service", F_OK) == 0;
    if (usual && unit) {
        puts("  systemctl restart gpuctld");
    } else if (usual) {
        puts("  gpuctld");
    } else {
        printf("  gpuctld --config %s\n", init->config_path);
    }
}

static void tell(const struct init *init)
{
    const struct config *config = &init->config;
    bool plain = config->tls_certificate == NULL && config->insecure_plain_http;
    const char *name = config_is_loopback(config->address) ? config->address : init->names.items[0];
    const char *form = strchr(name, ':') != NULL && name[0] != '[' ? "[%s]" : "%s";
    autofree char *host = xprintf(form, name);
    char pin[PIN_BYTES] = "";
    bool made =
        init->wrote_config || init->tls.made_authority || init->tls.made_certificate || init->made_token;
    bool pinned = init->tls.authority != NULL && pin_of(init->tls.authority, pin);
    puts(made ? "the controller is ready to be started:"
              : "nothing to do: the controller is set up already:");
    printf("  configuration  %s%s\n", init->config_path, init->wrote_config ? " (made)" : "");
    printf("  state          %s%s\n", config->state, init->made_token ? " (made)" : "");
    printf("  serves         %s://%s:%u\n", plain ? "http" : "https", host, config->port);
    if (pinned) {
        printf("  CA pin         %s%s\n", pin, init->tls.made_authority ? " (made)" : "");
    }
    puts("next:");
    tell_start(init);
    printf("  gpuctl login %s://%s:%u%s%s --token-file %s/" ADMIN_TOKEN_FILE "\n", plain ? "http" : "https",
           host, config->port, pinned ? " --ca-pin " : "", pin, config->state);
    puts("  gpuctl nodes join-command   # prints the line that each node runs");
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static bool read_options(struct init *init, int argc, char **argv, struct err *err)
{
    struct option_spec table[OPTION_COUNT];
    autofree char **rest = NULL;
    size_t rest_count = 0;
    table_fill(init, table);
    if (!options_parse(table, OPTION_COUNT, argc, argv, false, NULL, &rest, &rest_count, err)) {
        return false;
    }
    if (init->help) {
        options_help(stdout, "gpuctld init [OPTIONS]",
                     "Makes what a controller needs before its first start: state folder, certificate "
                     "authority, certificate,\ntoken of an administrator, configuration file. Run again, it "
                     "changes nothing.",
                     table, OPTION_COUNT);
    }
    return rest_count == 0 || err_field(err, ERR_USAGE, NULL, "see gpuctld init --help",
                                        "gpuctld init takes no argument \"%s\"", rest[0]);
}

bool init_run(int argc, char **argv, struct err *err)
{
    struct init init = {0};
    log_set_level(LOG_LEVEL_WARNING);
    bool good = read_options(&init, argc, argv, err);
    if (good && !init.help) {
        good = open_config(&init, err) && make_state(&init, err);
        if (good) {
            tell(&init);
        }
    }
    options_finish_list(&init.given_names);
    tls_finish(&init.tls);
    host_list_finish(&init.names);
    config_finish(&init.config);
    free(init.config_path);
    return good;
}
