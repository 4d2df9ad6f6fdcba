/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the agent's command line, settings and defaults, and checks them: the name can be part of a path,
 * folders are absolute, the URL may carry a token. It makes no folder. */
#include "agent/base/config.h"

#include <assert.h>
#include <curl/curl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/slurm/slurm_job.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/http/networks.h"
#include "proto/base/log.h"
#include "proto/base/settings/options.h"
#include "proto/base/settings/settings.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/spec/node_label.h"

#define USAGE "gpuagent [OPTIONS]\n       gpuagent join URL --token TOKEN [--ca-pin PIN] [OPTIONS]"
#define SUMMARY                                                                                              \
    "Offers this machine's GPUs, or CPU slots, to a gpuctl controller and runs its jobs.\n"                  \
    "Each option is also a setting: a line `name = value` of " SETTINGS_AGENT                                \
    ", and GPUCTL_<NAME> in the environment."

/* The kinds of rows: an option's name, what stands for its value in the help, its target, its help. */
#define TEXT(option, value, to, says)                                                                        \
    .name = (option), .value_name = (value), .help = (says), .kind = OPTION_TEXT, .target = (to)
#define LIST(option, value, to, says)                                                                        \
    .name = (option), .value_name = (value), .help = (says), .kind = OPTION_LIST, .target = (to)
#define INT(option, value, to, least, most, says)                                                            \
    .name = (option), .value_name = (value), .help = (says), .kind = OPTION_INT, .target = (to),             \
    .min = (least), .max = (most)
#define FLAG(option, to, says) .name = (option), .help = (says), .kind = OPTION_FLAG, .target = (to)

void config_table(struct config *config, struct config_given *given, struct option_spec table[CONFIG_OPTIONS])
{
    const struct option_spec filled[] = {
        {TEXT("controller", "URL", &config->url, "the controller [GPUCTL_URL]"), .alias = "url"},
        {TEXT("token-file", "FILE", &config->token_file, "file with the node's token [GPUCTL_TOKEN_FILE]")},
        {.name = "token-life",
         .value_name = "TIME",
         .help = "after which the node gets a new token of its own; 0: never (default: 30d)",
         .kind = OPTION_DURATION,
         .target = &config->token_life_ms},
        {TEXT("name", "NAME", &config->name, "name of this node (default: the host name)")},
        {TEXT("state", "DIR", &given->state, "folder that survives a reboot")},
        {TEXT("run", "DIR", &given->run,
              "folder that a reboot empties; that of the first start stays in use until then")},
        {TEXT(
            "environments", "DIR", &given->environments,
            "folder of jobs' Python environments, which agents of one host may share (default: in --state)")},
        {INT("environments-limit", "GIB", &config->environments_gib, 1, LIMIT_ENVIRONMENTS_GIB,
             "what they may take; those used longest ago go first (default: 100)")},
        {INT("image-limit", "GIB", &config->images_gib, 1, LIMIT_ENVIRONMENTS_GIB,
             "what container images may take in --state; those used longest ago go first (default: 200)")},
        {INT("log-limit", "MIB", &config->log_limit_mib, LIMIT_STREAM_MIN_BYTES / MIB,
             LIMIT_STREAM_MAX_BYTES / MIB,
             "what a rank's stdout or stderr may take here; then its first part and its end are kept "
             "(default: 1024, or what the controller says if that is less)")},
        {INT("files-limit", "GIB", &config->kept_gib, 1, LIMIT_KEPT_GIB,
             "what the files may take that a rank keeps in $GPUCTL_OUTPUT_DIR; others are left out (default: "
             "64)")},
        {INT("checkpoint-still", "SECONDS", &config->checkpoint_still_s, 1, LIMIT_CHECKPOINT_STILL_S,
             "after which $GPUCTL_CHECKPOINT_DIR of a running job is taken as a checkpoint, when it does not "
             "change any more (default: 10)")},
        {INT("max-processes", "N", &config->max_processes, 16, LIMIT_PROCESSES,
             "processes and threads that a job may have on this node for each of its devices (default: "
             "4096)")},
        {INT("cpus", "N", &config->cpus, 1, LIMIT_CPUS, "CPUs that jobs may have together (default: all)")},
        {TEXT("memory", "SIZE", &given->memory,
              "memory that jobs may have together, 240G for instance (default: 15/16 of what there is)")},
        {INT("sample-interval", "SECONDS", &config->sample_s, 0, LIMIT_SAMPLE_S,
             "measure the CPU, memory and GPUs that each job uses so often (default: 10; 0: never)")},
        {INT("warm-memory", "MIB", &config->warm_mib, 0, LIMIT_WARM_MIB,
             "what processes may take that have imported torch before there is a job for them (default: "
             "2048; 0: there are none)")},
        {TEXT("preload", "NAMES", &config->preload,
              "modules that they import where they are installed (default: torch,torch.distributed)")},
        {TEXT("shared-memory", "WHOSE", &given->shared_memory,
              "own: a /dev/shm and System V objects for each job, which go with it, where the agent may "
              "make them; host: those of the host (default: own)"),
         .choices = "own|host"},
        {TEXT(
             "run-as", "WHOM", &given->run_as,
             "owner: each job runs as the user of this host that has its owner's name, else as a user of the "
             "owner's alone; needs root. agent: as the user that runs gpuagent (default: owner for root, "
             "agent for "
             "others)"),
         .choices = "owner|agent"},
        {TEXT(
             "seccomp", "LIST", &given->seccomp,
             "system calls that jobs are refused where they run as their owners; default: those that are for "
             "administrators, and those that make namespaces or mounts; off: none (default: default)"),
         .choices = "default|off"},
        {TEXT("user-ids", "A-B", &given->user_ids,
              "numbers of users for owners that this host does not know (default: 1900000000-1900065535)")},
        {TEXT("devices", "LIST", &config->devices,
              "GPUs by index or UUID, or none (default: "
              "those of $CUDA_VISIBLE_DEVICES, else all; in a Slurm job those of the job)")},
        {INT("cpu-slots", "N", &config->cpu_slots, 1, LIMIT_NODE_DEVICES,
             "offer N CPU slots instead of GPUs")},
        {TEXT("gpu-type", "NAME", &config->gpu_type, "name of the devices' type in job specs")},
        {TEXT("pool", "NAME", &config->pool, "pool of this node")},
        {FLAG("reserved", &config->reserved, "the pool is a reserved one")},
        {LIST("label", "KEY=VALUE", &given->labels,
              "what jobs may ask for, such as zone=a; may be repeated [GPUCTL_LABELS]"),
         .alias = "labels"},
        {LIST("volume", "NAME=DIR[:ro][:mount]", &config->volumes,
              "folder that jobs may ask for by this name; ro: they only read it; mount: it counts only while "
              "something is mounted there; may be repeated [GPUCTL_VOLUMES]"),
         .alias = "volumes"},
        {TEXT("input-limit", "SIZE", &given->input_limit,
              "what inputs of jobs may take that the node keeps; those used longest ago go first (default: "
              "100G)")},
        {TEXT("input-networks", "LIST", &config->input_networks,
              "private networks that inputs may come from: \"10.0.0.0/8,fd00::/8\" (default: none)")},
        {FLAG("input-plain-http", &config->input_plain_http, "inputs may come by http://, too")},
        {TEXT("s3-endpoint", "URL", &config->s3_endpoint,
              "server of inputs that are s3://BUCKET/KEY (default: Amazon's)")},
        {TEXT("s3-region", "NAME", &config->s3_region,
              "its region, for secrets that name none (default: us-east-1)")},
        {TEXT("address", "ADDR", &given->address, "where other nodes reach this one (default: found out)")},
        {TEXT("python", "PATH", &given->python,
              "interpreter of jobs that name none (default: python3 on PATH)")},
        {TEXT("ports", "A-B", &given->ports, "range of MASTER_PORT (default: 20000-29999)")},
        {TEXT("expires-at", "TIME", &given->expires_at,
              "when this machine is taken back, 2026-11-21T09:30:00Z or +2h: work ends before "
              "(default: the end of the Slurm job that the agent runs in) [GPUCTL_EXPIRES_AT]")},
        {.name = "idle-exit",
         .value_name = "TIME",
         .help = "end after this long without work: no job, and nothing that is prepared for one (default: "
                 "never)",
         .kind = OPTION_DURATION,
         .target = &config->idle_exit_ms},
        {FLAG(
            "ephemeral", &config->ephemeral,
            "the node comes for a while: before the agent ends, its jobs go back to the queue, and the node "
            "is removed; so is its folder, unless --state names one (default: a new one in $TMPDIR); the "
            "default --name ends with the number of the Slurm job, or of the process")},
        {TEXT("cacert", "FILE", &given->cacert, "certificates that sign the controller's"),
         .alias = "ca-file"},
        {FLAG("insecure-plain-http", &config->insecure_plain_http, "allow http:// to another host")},
        {TEXT("log-level", "LEVEL", &given->log_level, "error, warning, info or debug"),
         .choices = "error|warning|info|debug"},
        {FLAG("list-devices", &config->list_devices,
              "print what this machine has as JSON, one device a line, and end"),
         .command_line_only = true},
        {TEXT("config", "FILE", &given->file,
              "read this file of settings alone; none: no file (default: " SETTINGS_AGENT
              " in ~/.config/gpuctl, then in /etc/gpuctl)"),
         .command_line_only = true},
        {FLAG("check-config", &given->check_config, "say whether the settings are sound, and end"),
         .command_line_only = true},
        {FLAG("help", &given->help, "show this"), .letter = 'h', .command_line_only = true},
        {FLAG("version", &given->version, "show the version"), .command_line_only = true},
    };
    static_assert(sizeof filled == CONFIG_OPTIONS * sizeof table[0], "count them");
    memcpy(table, filled, sizeof filled);
}

/* Labels as KEY=VALUE. */
static bool read_labels(struct config *config, const struct config_given *given, struct err *err)
{
    if (given->labels.count == 0) {
        return true;
    }
    config->labels = json_object();
    for (size_t i = 0; i < given->labels.count; i++) {
        if (!node_label_take(given->labels.items[i], config->labels, err)) {
            return false;
        }
    }
    return true;
}

static bool check_volumes(const struct config *config, struct err *err)
{
    autojson json_t *names = json_object();
    if (config->volumes.count + json_object_size(config->labels) > LIMIT_LABELS) {
        return err_field(err, ERR_USAGE, "--volume", "give fewer", "a node has at most %d labels and volumes",
                         LIMIT_LABELS);
    }
    for (size_t i = 0; i < config->volumes.count; i++) {
        struct node_volume volume;
        if (!node_volume_take(config->volumes.items[i], &volume, err)) {
            return false;
        }
        bool known = json_object_get(names, volume.name) != NULL;
        json_object_set_new(names, volume.name, json_true());
        node_volume_finish(&volume);
        if (known) {
            return err_field(err, ERR_USAGE, "--volume", "give each a name of its own",
                             "--volume %.200s has the name of another volume", config->volumes.items[i]);
        }
    }
    return true;
}

static bool check_word(const char *option, const char *word, const char *what, struct err *err)
{
    return word == NULL || text_is_name(word, LIMIT_NAME_BYTES) ||
           err_field(err, ERR_USAGE, option, "use letters, digits, '.', '_' and '-'", "\"%s\" cannot be %s",
                     word, what);
}

static bool check_inputs(struct config *config, const struct config_given *given, struct err *err)
{
    struct networks unused;
    const char *endpoint = config->s3_endpoint;
    config->inputs_bytes = DEFAULT_INPUTS_BYTES;
    config->s3_region = config->s3_region != NULL ? config->s3_region : "us-east-1";
    if (given->input_limit != NULL &&
        (!text_to_size(given->input_limit, &config->inputs_bytes) || config->inputs_bytes <= 0)) {
        return err_field(err, ERR_USAGE, "--input-limit", "write 500G, for instance", "\"%.64s\" is no size",
                         given->input_limit);
    }
    if (endpoint != NULL && (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)) {
        return err_field(err, ERR_USAGE, "--s3-endpoint", "write https://HOST:PORT", "\"%.64s\" is no URL",
                         endpoint);
    }
    return check_word("--s3-region", config->s3_region, "a region", err) &&
           networks_parse("--input-networks", config->input_networks, &unused, err);
}

static bool check_controller(const struct config *config, struct err *err)
{
    if (config->url == NULL) {
        err_set(err, ERR_USAGE, "no controller is named");
        return err_hint(err, "join one with gpuagent join, or name it with --controller or GPUCTL_URL");
    }
    if (config->token_file == NULL) {
        err_set(err, ERR_USAGE, "no token is named");
        return err_hint(err,
                        "give a file that holds the node's token with --token-file, or in GPUCTL_TOKEN_FILE");
    }
    return true;
}

/* Several ephemeral nodes may be on one host, at once or in turn, and each has a name of its own. */
static char *make_name(bool ephemeral)
{
    char host[HOST_NAME_MAX + 1] = "";
    struct slurm_job job;
    slurm_job_read(&job);
    gethostname(host, sizeof host - 1);
    return !ephemeral       ? xstrdup(host)
           : job.id == NULL ? xprintf("%s-%d", host, (int)getpid())
                            : xprintf("%s-%s", job.node != NULL ? job.node : host, job.id);
}

static bool check_name(struct config *config, struct err *err)
{
    if (config->name == NULL) {
        config->own_name = make_name(config->ephemeral);
        config->name = config->own_name;
    }
    return check_word("--name", config->name, "the name of a node", err) &&
           check_word("--pool", config->pool, "the name of a pool", err) &&
           check_word("--gpu-type", config->gpu_type, "a type of devices", err);
}

static bool url_is(CURLUcode code)
{
    if (code == CURLUE_OUT_OF_MEMORY) {
        out_of_memory();
    }
    return code == CURLUE_OK;
}

/* A token goes in clear text only to this host, unless the operator allows it. */
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

bool config_check(struct config *config, struct err *err)
{
    return check_name(config, err) && check_url(config, err);
}

/* $XDG_RUNTIME_DIR; NULL where logind would remove it at the user's last logout, while jobs go on. */
static const char *lasting_runtime(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const struct passwd *user = getpwuid(geteuid());
    if (runtime == NULL || runtime[0] != '/') {
        return NULL;
    }
    autofree char *linger = xprintf("/var/lib/systemd/linger/%s", user != NULL ? user->pw_name : "");
    bool lasts = strncmp(runtime, "/run/user/", strlen("/run/user/")) != 0 || access(linger, F_OK) == 0;
    return lasts ? runtime : NULL;
}

/* A path that nobody else can have made. */
static char *temporary_state(const struct config *config)
{
    const char *folder = getenv("TMPDIR");
    uint64_t random;
    random_fill(&random, sizeof random);
    return xprintf("%s/gpuctl-%s-%016llx", folder != NULL && folder[0] == '/' ? folder : "/tmp", config->name,
                   (unsigned long long)random);
}

static void choose_folders(struct config *config, const struct config_given *given)
{
    bool root = geteuid() == 0;
    const char *runtime = lasting_runtime();
    config->temporary_state = config->ephemeral && given->state == NULL;
    autofree char *user_state = settings_state_directory();
    autofree char *state = given->state != NULL      ? xstrdup(given->state)
                           : config->temporary_state ? temporary_state(config)
                           : root                    ? xprintf("/var/lib/gpuctl/agent-%s", config->name)
                                                     : xprintf("%s/agent-%s", user_state, config->name);
    config->state = file_absolute(state);
    char hash[HASH_HEX + 1];
    hash_hex(config->state, strlen(config->state), hash);
    config->unique = xprintf("%s-%.8s", config->name, hash); /* two clusters may both have a node "node0" */
    autofree char *run = given->run != NULL        ? xstrdup(given->run)
                         : config->temporary_state ? xprintf("%s/run", config->state)
                         : root                    ? xprintf("/run/gpuctl-%s", config->unique)
                         : runtime != NULL         ? xprintf("%s/gpuctl-%s", runtime, config->unique)
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

/* Numbers below 1000 are those of the host's own users, and so is the last one. */
static bool parse_users(const struct config_given *given, struct config *config, struct err *err)
{
    config->as_owner = given->run_as != NULL ? strcmp(given->run_as, "owner") == 0 : geteuid() == 0;
    config->user_first = DEFAULT_USER_FIRST;
    config->user_last = DEFAULT_USER_LAST;
    if (config->as_owner && geteuid() != 0) {
        return err_field(err, ERR_USAGE, "--run-as", "start gpuagent as root, or leave --run-as out",
                         "only root can run jobs as other users");
    }
    config->seccomp = config->as_owner && (given->seccomp == NULL || strcmp(given->seccomp, "off") != 0);
    if (given->user_ids == NULL) {
        return true;
    }
    autofree char *copy = xstrdup(given->user_ids);
    char *last = copy, *first = strsep(&last, "-");
    if (last == NULL || !text_to_int(first, USERS_LEAST, INT32_MAX, &config->user_first) ||
        !text_to_int(last, config->user_first + USERS_OF_BUILDS, INT32_MAX, &config->user_last)) {
        return err_field(err, ERR_USAGE, "--user-ids", "write it as 1900000000-1900065535",
                         "--user-ids %s is not a range of at least %d numbers above %d", given->user_ids,
                         USERS_OF_BUILDS + 1, USERS_LEAST - 1);
    }
    return true;
}

static bool parse_expiry(const char *text, struct config *config, struct err *err)
{
    int64_t now_ms = clock_wall_ms();
    if (text == NULL) {
        struct slurm_job job;
        slurm_job_read(&job);
        config->expires_at_ms = job.end_ms > now_ms ? job.end_ms : 0;
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

static bool parse_memory(const char *text, struct config *config, struct err *err)
{
    return text == NULL ||
           (text_to_size(text, &config->memory_bytes) && config->memory_bytes >= LIMIT_MEMORY_MIN_BYTES &&
            config->memory_bytes <= LIMIT_MEMORY_BYTES) ||
           err_field(err, ERR_USAGE, "--memory", "write it as 240G or 512M", "--memory %s is not a size",
                     text);
}

/* Jobs do not see what the host has there: agent/shim/shim_shared.c. */
static bool is_hidden(const char *path)
{
    static const char *const hidden[] = {"/tmp/", "/var/tmp/", "/run/lock/", "/run/user/"};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (strncmp(path, hidden[i], strlen(hidden[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool folders_stay_visible(const struct config *config, struct err *err)
{
    const char *const folders[][2] = {
        {"--state", config->state}, {"--run", config->run}, {"--environments", config->environments}};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *path = folders[i][1];
        if (is_hidden(path)) {
            return err_field(err, ERR_USAGE, folders[i][0],
                             "name a folder elsewhere, or have jobs run as root with --run-as agent",
                             "%s %s would be hidden from jobs, which do not see what the host has there",
                             folders[i][0], path);
        }
    }
    return true;
}

static bool complete(struct config *config, const struct config_given *given, struct err *err)
{
    enum log_level level;
    if (given->log_level != NULL && log_level_from_text(given->log_level, &level)) {
        log_set_level(level);
    }
    if (!check_controller(config, err) || !read_labels(config, given, err) || !check_volumes(config, err) ||
        !check_inputs(config, given, err) || !check_name(config, err) || !check_url(config, err) ||
        !parse_ports(given->ports, config, err) || !parse_users(given, config, err) ||
        !parse_memory(given->memory, config, err) || !parse_expiry(given->expires_at, config, err)) {
        return false;
    }
    choose_folders(config, given);
    if (config->as_owner && !folders_stay_visible(config, err)) {
        return false;
    }
    config->host_memory = given->shared_memory != NULL && strcmp(given->shared_memory, "host") == 0;
    return given->address == NULL || address_resolve(given->address, config->address, err);
}

/* Reads the command line, then the settings for options that it does not give. */
static bool read_options(int argc, char **argv, struct config *config, struct config_given *given,
                         struct err *err)
{
    struct option_spec table[CONFIG_OPTIONS];
    bool named[CONFIG_OPTIONS] = {false};
    size_t rest_count;
    autofree char **rest = NULL;
    config_table(config, given, table);
    if (!options_parse(table, CONFIG_OPTIONS, argc, argv, false, named, &rest, &rest_count, err)) {
        return false;
    }
    if (given->help) {
        options_help(stdout, USAGE, SUMMARY, table, CONFIG_OPTIONS);
    } else if (given->version) {
        puts("gpuagent " GPUCTL_VERSION);
    } else if (rest_count > 0) {
        return err_set(err, ERR_USAGE, "gpuagent takes no argument %s", rest[0]);
    }
    if (given->help || given->version || config->list_devices) {
        return true;
    }
    config->settings = settings_load(SETTINGS_AGENT, given->file, err);
    return config->settings != NULL && settings_apply(config->settings, table, CONFIG_OPTIONS, named, err);
}

/* For --check-config: also checks the files that the settings name. */
static bool check_files(const struct config *config, struct err *err)
{
    autotext struct text files = {0};
    if (access(config->token_file, R_OK) != 0) {
        err_errno(err, "cannot read the token file %s", config->token_file);
        return err_hint(err, "join the controller with gpuagent join, or name another file with token-file");
    }
    if (config->cacert != NULL && access(config->cacert, R_OK) != 0) {
        return err_errno(err, "cannot read the certificates %s", config->cacert);
    }
    settings_name_files(config->settings, &files);
    printf("ok: the settings are sound (%s)\n", files.bytes);
    return true;
}

/* In a job of Slurm the GPUs are the job's: one that has none sees those of others where Slurm hides nothing.
 */
static const char *visible_devices(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    struct slurm_job job;
    slurm_job_read(&job);
    if (job.id != NULL) {
        return job.gpus != NULL ? job.gpus : "none";
    }
    return visible != NULL && *visible != '\0' ? visible : "all";
}

void config_defaults(struct config *ret_config)
{
    *ret_config = (struct config){.devices = visible_devices(),
                                  .environments_gib = DEFAULT_ENVIRONMENTS_GIB,
                                  .images_gib = DEFAULT_IMAGES_GIB,
                                  .log_limit_mib = LIMIT_STREAM_BYTES / MIB,
                                  .kept_gib = DEFAULT_KEPT_GIB,
                                  .checkpoint_still_s = DEFAULT_CHECKPOINT_STILL_S,
                                  .token_life_ms = DEFAULT_NODE_TOKEN_LIFE_MS,
                                  .max_processes = DEFAULT_PROCESSES,
                                  .sample_s = SAMPLE_S,
                                  .warm_mib = DEFAULT_WARM_MIB,
                                  .preload = DEFAULT_WARM_NAMES};
}

bool config_read(int argc, char **argv, struct config *ret_config, bool *ret_done, struct err *err)
{
    struct config config;
    struct config_given given = {0};
    config_defaults(&config);
    bool usable = read_options(argc, argv, &config, &given, err);
    *ret_done = given.help || given.version || given.check_config;
    usable = usable && (given.help || given.version || config.list_devices || complete(&config, &given, err));
    usable = usable && (!given.check_config || given.help || given.version || check_files(&config, err));
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
    options_finish_list(&config->volumes);
    free(config->own_name);
    free(config->unique);
    free(config->state);
    free(config->run);
    free(config->environments);
    free(config->python);
    free(config->cacert);
}
