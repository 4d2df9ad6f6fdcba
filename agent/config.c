/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the agent's command line and its defaults. It promises that what it lets through is usable: a name
 * that can be part of a path, folders that are absolute, a URL that may carry a token. It makes no folder. */
#include "agent/config.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files.h"
#include "proto/base/hash.h"
#include "proto/base/log.h"
#include "proto/base/options.h"
#include "proto/base/settings.h"
#include "proto/base/text.h"
#include "proto/limits.h"
#include "proto/node_label.h"

#define USAGE   "gpuagent --controller URL --token-file FILE [options]"
#define SUMMARY "Offers this machine's GPUs, or CPU slots, to a gpuctl controller and runs its jobs."

/* Options as they are written. */
struct given {
    const char *state, *run, *environments, *python, *cacert, *address, *ports, *expires_at, *log_level;
    const char *shared_memory;
    struct option_list labels;
    bool help, version;
};

static bool parse_options(int argc, char **argv, struct config *config, struct given *given, struct err *err)
{
    const struct option_spec specs[] = {
        {0, "controller", "URL", "the controller [GPUCTL_URL]", OPTION_TEXT, &config->url, 0, 0, NULL},
        {0, "token-file", "FILE", "file with the node's token [GPUCTL_TOKEN_FILE]", OPTION_TEXT,
         &config->token_file, 0, 0, NULL},
        {0, "name", "NAME", "name of this node (default: the host name)", OPTION_TEXT, &config->name, 0, 0,
         NULL},
        {0, "state", "DIR", "folder that survives a reboot", OPTION_TEXT, &given->state, 0, 0, NULL},
        {0, "run", "DIR", "folder that a reboot empties; that of the first start stays in use until then",
         OPTION_TEXT, &given->run, 0, 0, NULL},
        {0, "environments", "DIR",
         "folder of jobs' Python environments, which agents of one host may share (default: in --state)",
         OPTION_TEXT, &given->environments, 0, 0, NULL},
        {0, "environments-limit", "GIB", "what they may take; those used longest ago go first (default: 100)",
         OPTION_INT, &config->environments_gib, 1, LIMIT_ENVIRONMENTS_GIB, NULL},
        {0, "log-limit", "MIB",
         "what a rank's stdout or stderr may take here; then its first part and its end are kept (default: "
         "1024, "
         "or what the controller says if that is less)",
         OPTION_INT, &config->log_limit_mib, LIMIT_STREAM_MIN_BYTES / MIB, LIMIT_STREAM_MAX_BYTES / MIB,
         NULL},
        {0, "max-processes", "N",
         "processes and threads that a job may have on this node for each of its devices (default: 4096)",
         OPTION_INT, &config->max_processes, 16, LIMIT_PROCESSES, NULL},
        {0, "warm-memory", "MIB",
         "what processes may take that have imported torch before there is a job for them (default: 2048; 0: "
         "there are none)",
         OPTION_INT, &config->warm_mib, 0, LIMIT_WARM_MIB, NULL},
        {0, "preload", "NAMES",
         "modules that they import where they are installed (default: torch,torch.distributed)", OPTION_TEXT,
         &config->preload, 0, 0, NULL},
        {0, "shared-memory", "WHOSE",
         "own: a /dev/shm and System V objects for each job, which go with it, where the agent may make "
         "them; "
         "host: those of the host (default: own)",
         OPTION_TEXT, &given->shared_memory, 0, 0, "own|host"},
        {0, "devices", "LIST", "GPUs by index or UUID, or none (default: all)", OPTION_TEXT, &config->devices,
         0, 0, NULL},
        {0, "cpu-slots", "N", "offer N CPU slots instead of GPUs", OPTION_INT, &config->cpu_slots, 1,
         LIMIT_NODE_DEVICES, NULL},
        {0, "gpu-type", "NAME", "name of the devices' type in job specs", OPTION_TEXT, &config->gpu_type, 0,
         0, NULL},
        {0, "pool", "NAME", "pool of this node", OPTION_TEXT, &config->pool, 0, 0, NULL},
        {0, "reserved", NULL, "the pool is a reserved one", OPTION_FLAG, &config->reserved, 0, 0, NULL},
        {0, "label", "KEY=VALUE", "what jobs may ask for, such as zone=a; may be repeated [GPUCTL_LABELS]",
         OPTION_LIST, &given->labels, 0, 0, NULL},
        {0, "address", "ADDR", "where other nodes reach this one (default: found out)", OPTION_TEXT,
         &given->address, 0, 0, NULL},
        {0, "python", "PATH", "interpreter of jobs that name none (default: python3 on PATH)", OPTION_TEXT,
         &given->python, 0, 0, NULL},
        {0, "ports", "A-B", "range of MASTER_PORT (default: 20000-29999)", OPTION_TEXT, &given->ports, 0, 0,
         NULL},
        {0, "expires-at", "TIME",
         "when this machine is taken back, 2026-11-21T09:30:00Z or +2h: work ends before [GPUCTL_EXPIRES_AT]",
         OPTION_TEXT, &given->expires_at, 0, 0, NULL},
        {0, "cacert", "FILE", "certificates that sign the controller's", OPTION_TEXT, &given->cacert, 0, 0,
         NULL},
        {0, "insecure-plain-http", NULL, "allow http:// to another host", OPTION_FLAG,
         &config->insecure_plain_http, 0, 0, NULL},
        {0, "log-level", "LEVEL", "error, warning, info or debug", OPTION_TEXT, &given->log_level, 0, 0,
         "error|warning|info|debug"},
        {0, "list-devices", NULL, "print what this machine has as JSON, one device a line, and end",
         OPTION_FLAG, &config->list_devices, 0, 0, NULL},
        {'h', "help", NULL, "show this", OPTION_FLAG, &given->help, 0, 0, NULL},
        {0, "version", NULL, "show the version", OPTION_FLAG, &given->version, 0, 0, NULL},
    };
    size_t count = sizeof specs / sizeof specs[0], rest_count;
    autofree char **rest = NULL;
    if (!options_parse(specs, count, argc, argv, false, &rest, &rest_count, err)) {
        return false;
    }
    if (given->help) {
        options_help(stdout, USAGE, SUMMARY, specs, count);
    } else if (given->version) {
        puts("gpuagent " GPUCTL_VERSION);
    } else if (rest_count > 0) {
        return err_set(err, ERR_USAGE, "gpuagent takes no argument %s", rest[0]);
    }
    return true;
}

static bool read_settings(struct config *config, struct err *err)
{
    config->settings = settings_load(err);
    if (config->settings == NULL) {
        return false;
    }
    config->url = config->url != NULL ? config->url : settings_get(config->settings, "url");
    config->token_file =
        config->token_file != NULL ? config->token_file : settings_get(config->settings, "token_file");
    if (config->url == NULL) {
        err_set(err, ERR_USAGE, "no controller is named");
        return err_hint(err, "give its address with --controller, or in GPUCTL_URL");
    }
    if (config->token_file == NULL) {
        err_set(err, ERR_USAGE, "no token is named");
        return err_hint(err,
                        "give a file that holds the node's token with --token-file, or in GPUCTL_TOKEN_FILE");
    }
    return true;
}

/* Labels of the command line, else those of a setting: "zone=a,disk=ssd". */
static bool read_labels(struct config *config, const struct given *given, struct err *err)
{
    const char *setting = settings_get(config->settings, "labels");
    if (given->labels.count == 0 && (setting == NULL || *setting == '\0')) {
        return true;
    }
    config->labels = json_object();
    for (size_t i = 0; i < given->labels.count; i++) {
        if (!node_label_take(given->labels.items[i], config->labels, err)) {
            return false;
        }
    }
    autofree char *copy = xstrdup(given->labels.count == 0 ? setting : "");
    char *rest = given->labels.count == 0 ? copy : NULL;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (!node_label_take(word, config->labels, err)) {
            return false;
        }
    }
    return true;
}

static bool check_name(struct config *config, struct err *err)
{
    if (config->name == NULL) {
        char host[HOST_NAME_MAX + 1] = "";
        gethostname(host, sizeof host - 1);
        config->host_name = xstrdup(host);
        config->name = config->host_name;
    }
    if (!text_is_name(config->name, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_USAGE, "--name", "use letters, digits, '.', '_' and '-'",
                         "\"%s\" cannot be the name of a node", config->name);
    }
    if (config->pool != NULL && !text_is_name(config->pool, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_USAGE, "--pool", "use letters, digits, '.', '_' and '-'",
                         "\"%s\" cannot be the name of a pool", config->pool);
    }
    if (config->gpu_type != NULL && !text_is_name(config->gpu_type, LIMIT_NAME_BYTES)) {
        return err_field(err, ERR_USAGE, "--gpu-type", "use letters, digits, '.', '_' and '-'",
                         "\"%s\" cannot be a type of devices", config->gpu_type);
    }
    return true;
}

static bool url_is(CURLUcode code)
{
    if (code == CURLUE_OUT_OF_MEMORY) {
        out_of_memory();
    }
    return code == CURLUE_OK;
}

/* A token goes in clear text only to this host, or where somebody has said that it may. */
static bool check_url(struct config *config, struct err *err)
{
    CURLU *url = curl_url();
    if (url == NULL) {
        out_of_memory();
    }
    char *host = NULL, *scheme = NULL;
    bool usable = url_is(curl_url_set(url, CURLUPART_URL, config->url, 0)) &&
                  url_is(curl_url_get(url, CURLUPART_HOST, &host, 0)) &&
                  url_is(curl_url_get(url, CURLUPART_SCHEME, &scheme, 0)) &&
                  (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    bool plain = usable && strcmp(scheme, "http") == 0;
    if (usable) {
        size_t length = strlen(host);
        bool bracket = host[0] == '[';
        snprintf(config->controller_host, sizeof config->controller_host, "%.*s",
                 (int)(bracket ? length - 2 : length), bracket ? host + 1 : host);
    }
    curl_free(host);
    curl_free(scheme);
    curl_url_cleanup(url);
    if (!usable) {
        return err_field(err, ERR_USAGE, "--controller", "write it as https://HOST:PORT", "%s is not a URL",
                         config->url);
    }
    if (plain && !address_is_loopback(config->controller_host)) {
        if (!config->insecure_plain_http) {
            return err_field(err, ERR_USAGE, "--controller",
                             "use https, or allow it with --insecure-plain-http",
                             "plain http to %s would show the token to the network", config->controller_host);
        }
        log_warning("transport insecure", "url=%s", config->url);
    }
    return true;
}

static void choose_folders(struct config *config, const struct given *given)
{
    bool root = geteuid() == 0;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    autofree char *user_state = settings_state_directory();
    autofree char *state = given->state != NULL ? xstrdup(given->state)
                           : root               ? xprintf("/var/lib/gpuctl/agent-%s", config->name)
                                                : xprintf("%s/agent-%s", user_state, config->name);
    config->state = file_absolute(state);
    char hash[HASH_HEX + 1];
    hash_hex(config->state, strlen(config->state), hash);
    config->unique = xprintf("%s-%.8s", config->name, hash); /* two clusters may both call a node "node0" */
    autofree char *run = given->run != NULL ? xstrdup(given->run)
                         : root             ? xprintf("/run/gpuctl-%s", config->unique)
                         : runtime != NULL && runtime[0] == '/'
                             ? xprintf("%s/gpuctl-%s", runtime, config->unique)
                             : xprintf("%s/run", config->state);
    config->run = file_absolute(run);
    autofree char *environments = given->environments != NULL ? xstrdup(given->environments)
                                                              : xprintf("%s/environments", config->state);
    config->environments = file_absolute(environments);
    config->python = file_absolute_program(given->python); /* ranks have another working folder */
    config->cacert = file_absolute(given->cacert);
}

static bool parse_ports(const char *ports, struct config *config, struct err *err)
{
    config->port_first = DEFAULT_PORT_FIRST;
    config->port_last = DEFAULT_PORT_LAST;
    if (ports == NULL) {
        return true;
    }
    autofree char *copy = xstrdup(ports);
    char *last = copy, *first = strsep(&last, "-");
    if (last == NULL || !text_to_int(first, 1, 65535, &config->port_first) ||
        !text_to_int(last, config->port_first, 65535, &config->port_last)) {
        return err_field(err, ERR_USAGE, "--ports", "write it as 20000-29999", "%s is not a range of ports",
                         ports);
    }
    return true;
}

static bool parse_expiry(const char *given, struct config *config, struct err *err)
{
    const char *text = given != NULL ? given : settings_get(config->settings, "expires_at");
    int64_t now_ms = clock_wall_ms();
    if (text == NULL) {
        return true;
    }
    if (!text_to_moment_ms(text, now_ms, &config->expires_at_ms) || config->expires_at_ms > LIMIT_WALL_MS) {
        return err_field(err, ERR_USAGE, "--expires-at", "write it as 2026-11-21T09:30:00Z or +2h",
                         "--expires-at %s is not a time", text);
    }
    return config->expires_at_ms > now_ms ||
           err_field(err, ERR_USAGE, "--expires-at", "name a time to come, or leave it out",
                     "--expires-at %s is in the past", text);
}

static bool complete(struct config *config, const struct given *given, struct err *err)
{
    enum log_level level;
    if (given->log_level != NULL && log_level_from_text(given->log_level, &level)) {
        log_set_level(level);
    }
    if (!read_settings(config, err) || !read_labels(config, given, err) || !check_name(config, err) ||
        !check_url(config, err) || !parse_ports(given->ports, config, err) ||
        !parse_expiry(given->expires_at, config, err)) {
        return false;
    }
    choose_folders(config, given);
    config->host_memory = given->shared_memory != NULL && strcmp(given->shared_memory, "host") == 0;
    return given->address == NULL || address_resolve(given->address, config->address, err);
}

bool config_read(int argc, char **argv, struct config *ret_config, bool *ret_done, struct err *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    struct config config = {.devices = visible != NULL && *visible != '\0' ? visible : "all",
                            .environments_gib = DEFAULT_ENVIRONMENTS_GIB,
                            .log_limit_mib = LIMIT_STREAM_BYTES / MIB,
                            .max_processes = DEFAULT_PROCESSES,
                            .warm_mib = DEFAULT_WARM_MIB,
                            .preload = DEFAULT_WARM_NAMES};
    struct given given = {0};
    bool usable = parse_options(argc, argv, &config, &given, err);
    *ret_done = given.help || given.version;
    usable = usable && (*ret_done || config.list_devices || complete(&config, &given, err));
    options_finish_list(&given.labels);
    if (!usable || *ret_done) {
        config_finish(&config);
        return usable;
    }
    *ret_config = config;
    return true;
}

void config_finish(struct config *config)
{
    settings_destroy(config->settings);
    json_decref(config->labels);
    free(config->host_name);
    free(config->unique);
    free(config->state);
    free(config->run);
    free(config->environments);
    free(config->python);
    free(config->cacert);
}
