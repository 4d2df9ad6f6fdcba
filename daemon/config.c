/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the options of gpuctld, with their defaults. A parsed configuration needs no further
 * checks. An address that others can reach is served without TLS only if an option asks for exactly that. */
#include "daemon/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/objects/s3_address.h"
#include "daemon/traces/collector.h"
#include "proto/base/http/fetch.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"
#include "proto/limits_objects.h"

#define OPTION_COUNT 59

#define DEFAULT_OIDC_SCOPES  "openid profile email"
#define DEFAULT_USER_CLAIM   "preferred_username"
#define DEFAULT_GROUPS_CLAIM "groups"

static void table_fill(struct config *config, struct option_spec table[OPTION_COUNT])
{
    const struct option_spec filled[OPTION_COUNT] = {
        {.name = "state",
         .value_name = "DIR",
         .help = "folder of database, payloads and logs (default /var/lib/gpuctl)",
         .kind = OPTION_TEXT,
         .target = &config->state},
        {.name = "listen",
         .value_name = "HOST:PORT",
         .help = "where to serve; port 0 is any (default 127.0.0.1:7070)",
         .kind = OPTION_TEXT,
         .target = &config->listen},
        {.name = "tls-cert",
         .value_name = "FILE",
         .help =
             "certificate chain in PEM (default off the loopback, and after gpuctld init: one of its own, in "
             "STATE/tls)",
         .kind = OPTION_TEXT,
         .target = &config->tls_certificate},
        {.name = "tls-key",
         .value_name = "FILE",
         .help = "its key in PEM",
         .kind = OPTION_TEXT,
         .target = &config->tls_key},
        {.name = "insecure-plain-http",
         .help = "serve plain HTTP, even on an address that others can reach",
         .kind = OPTION_FLAG,
         .target = &config->insecure_plain_http},
        {.name = "host-name",
         .value_name = "NAME",
         .help = "a name or address that clients may use for this host; may be repeated (default with a "
                 "certificate of its own: those that it finds)",
         .kind = OPTION_LIST,
         .target = &config->host_names},
        {.name = "endpoint-file",
         .value_name = "FILE",
         .help = "write the URL and pid there once it serves",
         .kind = OPTION_TEXT,
         .target = &config->endpoint_file},
        {.name = "idle-exit",
         .value_name = "TIME",
         .help = "end after this long without jobs and requests (default: never)",
         .kind = OPTION_DURATION,
         .target = &config->idle_exit_ms},
        {.name = "embedded",
         .command_line_only = true,
         .help = "the agents are this instance's own and end with it",
         .kind = OPTION_FLAG,
         .target = &config->embedded},
        {.name = "beat",
         .value_name = "TIME",
         .help = "how often nodes report that they live (default 5s)",
         .kind = OPTION_DURATION,
         .target = &config->heartbeat_ms},
        {.name = "lease-min",
         .value_name = "TIME",
         .help = "the smallest lease that a job may ask for (default 60s)",
         .kind = OPTION_DURATION,
         .target = &config->lease_min_ms},
        {.name = "client-patience",
         .value_name = "TIME",
         .help = "cut off who takes longer for a request's headers, or sends less than 1 KiB/s (default 10s)",
         .kind = OPTION_DURATION,
         .target = &config->patience_ms},
        {.name = "connections-per-address",
         .value_name = "N",
         .help = "the most that one address may hold (default: half of all; loopback: no limit)",
         .kind = OPTION_INT,
         .target = &config->per_address,
         .min = 1,
         .max = LIMIT_CONNECTIONS},
        {.name = "request-wait",
         .value_name = "TIME",
         .help = "while several ask, each user and address has a share of the controller's time; refuse "
                 "requests beyond it (429) that have waited this long; 0: no shares (default 10s)",
         .kind = OPTION_DURATION,
         .target = &config->request_wait_ms},
        {.name = "log-limit",
         .value_name = "MIB",
         .help = "what a rank's stdout or stderr may take; then its first part and its end are kept (default "
                 "1024)",
         .kind = OPTION_INT,
         .target = &config->log_limit_mib,
         .min = LIMIT_STREAM_MIN_BYTES / MIB,
         .max = LIMIT_STREAM_MAX_BYTES / MIB},
        {.name = "checkpoint-limit",
         .value_name = "GIB",
         .help = "what a node of a job may have in $GPUCTL_CHECKPOINT_DIR; of more no checkpoint is taken "
                 "(default 64)",
         .kind = OPTION_INT,
         .target = &config->checkpoint_limit_gib,
         .min = 1,
         .max = LIMIT_CHECKPOINT_GIB},
        {.name = "upload-quota",
         .value_name = "MIB",
         .help = "what a person may send before jobs name it; beyond it uploads are refused (default 16384)",
         .kind = OPTION_INT,
         .target = &config->upload_quota_mib,
         .min = 1,
         .max = LIMIT_UPLOAD_QUOTA_BYTES / MIB},
        {.name = "policy",
         .value_name = "NAME",
         .help = "whose turn it is: fifo, easy, sjf or default (default: default)",
         .kind = OPTION_TEXT,
         .target = &config->policy_name},
        {.name = "share-half-life",
         .value_name = "TIME",
         .help = "after which past use counts half in fair shares (default 7d)",
         .kind = OPTION_DURATION,
         .target = &config->share_half_life_ms},
        {.name = "idle-after",
         .value_name = "TIME",
         .help = "tell owners of jobs whose GPUs are nearly unused for so long; 0: never (default 30m)",
         .kind = OPTION_DURATION,
         .target = &config->idle_after_ms},
        {.name = "min-free",
         .value_name = "SIZE",
         .help = "refuse submissions with less free disk (default: 5 % of it, 256MiB to 2GiB)",
         .kind = OPTION_TEXT,
         .target = &config->min_free},
        {.name = "keep-jobs",
         .value_name = "TIME",
         .help = "remove jobs this long after their end; 0: never (default 90d)",
         .kind = OPTION_DURATION,
         .target = &config->keep_jobs_ms},
        {.name = "keep-logs",
         .value_name = "TIME",
         .help = "remove the output of jobs this long after their end; 0: with the job (default 30d)",
         .kind = OPTION_DURATION,
         .target = &config->keep_logs_ms},
        {.name = "logs-share",
         .value_name = "PERCENT",
         .help =
             "the part of the disk that output may take; beyond it the oldest of ended jobs goes (default "
             "50)",
         .kind = OPTION_INT,
         .target = &config->logs_share_percent,
         .min = 1,
         .max = 100},
        {.name = "keep-nodes",
         .value_name = "TIME",
         .help = "remove nodes that were not heard for so long and have no work; 0: never (default 30d)",
         .kind = OPTION_DURATION,
         .target = &config->keep_nodes_ms},
        {.name = "keep-runs",
         .value_name = "TIME",
         .help = "remove MLflow's runs and their artifacts this long after their end; 0: never (default 0)",
         .kind = OPTION_DURATION,
         .target = &config->keep_runs_ms},
        {.name = "keep-usage",
         .value_name = "TIME",
         .help = "remember for so long who used what in which hour; 0: for ever (default 1095d)",
         .kind = OPTION_DURATION,
         .target = &config->keep_usage_ms},
        {.name = "keep-audit",
         .value_name = "TIME",
         .help = "remember for so long who did what; 0: for ever (default 400d)",
         .kind = OPTION_DURATION,
         .target = &config->keep_audit_ms},
        {.name = "prices",
         .value_name = "LIST",
         .help = "what a GPU costs in an hour, by its type or type and pool: \"H100=2.5,H100/spot=1.2\"",
         .kind = OPTION_TEXT,
         .target = &config->prices},
        {.name = "currency",
         .value_name = "NAME",
         .help = "of these prices, for people: EUR",
         .kind = OPTION_TEXT,
         .target = &config->currency},
        {.name = "otlp-endpoint",
         .value_name = "URL",
         .help = "send traces of jobs to this collector, as OTLP/HTTP to URL/v1/traces (default: to none)",
         .kind = OPTION_TEXT,
         .target = &config->otlp_endpoint},
        {.name = "otlp-headers",
         .value_name = "FILE",
         .help = "headers for it, one a line: \"NAME: VALUE\"",
         .kind = OPTION_TEXT,
         .target = &config->otlp_headers},
        {.name = "oidc-issuer",
         .value_name = "URL",
         .help = "the identity provider that `gpuctl login` logs people in with, by OpenID Connect (default: "
                 "none)",
         .kind = OPTION_TEXT,
         .target = &config->oidc.rules.issuer},
        {.name = "oidc-client-id",
         .value_name = "ID",
         .help = "of gpuctl there: a public client of its own, with the device flow",
         .kind = OPTION_TEXT,
         .target = &config->oidc.rules.client_id},
        {.name = "oidc-scopes",
         .value_name = "LIST",
         .help = "that gpuctl asks for (default \"" DEFAULT_OIDC_SCOPES "\")",
         .kind = OPTION_TEXT,
         .target = &config->oidc.scopes},
        {.name = "oidc-user-claim",
         .value_name = "NAME",
         .help = "where an ID token has the name of the person, which people must not be able to choose "
                 "(default " DEFAULT_USER_CLAIM ")",
         .kind = OPTION_TEXT,
         .target = &config->oidc.rules.user_claim},
        {.name = "oidc-user-domain",
         .value_name = "DOMAIN",
         .help = "these names end with @DOMAIN, which is left away; others are refused",
         .kind = OPTION_TEXT,
         .target = &config->oidc.rules.user_domain},
        {.name = "oidc-groups-claim",
         .value_name = "NAME",
         .help = "where it has their groups (default " DEFAULT_GROUPS_CLAIM ")",
         .kind = OPTION_TEXT,
         .target = &config->oidc.rules.groups_claim},
        {.name = "oidc-role",
         .value_name = "GROUP=ROLE",
         .help = "people of the group are viewer, user, operator or admin; may be repeated, the highest "
                 "counts; *=user is everybody. Who has no role is refused",
         .kind = OPTION_LIST,
         .target = &config->oidc_roles},
        {.name = "login-life",
         .value_name = "TIME",
         .help = "how long the token of a login is valid (default 12h)",
         .kind = OPTION_DURATION,
         .target = &config->oidc.life_ms},
        {.name = "webhook-networks",
         .value_name = "LIST",
         .help = "private networks that webhooks may be sent to: \"10.0.0.0/8,fd00::/8\" (default: none)",
         .kind = OPTION_TEXT,
         .target = &config->webhook_networks},
        {.name = "image-registry",
         .value_name = "HOST[:PORT]",
         .help = "container images of jobs come from this registry; may be repeated (default: from any)",
         .kind = OPTION_LIST,
         .target = &config->image_registries},
        {.name = "webhook-pause",
         .value_name = "TIME",
         .help = "before a delivery that failed is tried again; each next pause is three times as long "
                 "(default 5s)",
         .kind = OPTION_DURATION,
         .target = &config->webhook_pause_ms},
        {.name = "public-url",
         .value_name = "URL",
         .help = "of this controller, for links in webhooks (default: by --listen and --host-name)",
         .kind = OPTION_TEXT,
         .target = &config->public_url},
        {.name = "object-store",
         .value_name = "URL",
         .help = "keep payloads, results, artifacts and the output of ended jobs there: "
                 "s3://BUCKET[/PREFIX]?endpoint=https://HOST&region=NAME (default: files in STATE)",
         .kind = OPTION_TEXT,
         .target = &config->object_store},
        {.name = "object-store-credentials",
         .value_name = "FILE",
         .help = "its credentials, in the form of ~/.aws/credentials (default: AWS_ACCESS_KEY_ID, "
                 "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment)",
         .kind = OPTION_TEXT,
         .target = &config->object_credentials},
        {.name = "object-store-after",
         .value_name = "TIME",
         .help = "keep a copy on the disk for so long after its last use, and the files of a job after its "
                 "end (default 1h)",
         .kind = OPTION_DURATION,
         .target = &config->object_after_ms},
        {.name = "object-store-spool",
         .value_name = "SIZE",
         .help =
             "what may wait on the disk while the store is away; then uploads are refused (default 16GiB)",
         .kind = OPTION_TEXT,
         .target = &config->object_spool},
        {.name = "backup-folder",
         .value_name = "DIR",
         .help = "where backups are kept (default STATE/backups)",
         .kind = OPTION_TEXT,
         .target = &config->backup_folder},
        {.name = "backup-interval",
         .value_name = "TIME",
         .help = "make a backup this often; 0: never (default 10m)",
         .kind = OPTION_DURATION,
         .target = &config->backup_interval_ms},
        {.name = "backup-keep",
         .value_name = "N",
         .help = "how many backups to keep (default 6)",
         .kind = OPTION_INT,
         .min = 1,
         .max = LIMIT_BACKUP_KEEP,
         .target = &config->backup_keep},
        {.name = "backup",
         .command_line_only = true,
         .value_name = "DIR",
         .help = "make a backup as the folder DIR, also while a controller serves, and end",
         .kind = OPTION_TEXT,
         .target = &config->backup_to},
        {.name = "restore",
         .command_line_only = true,
         .value_name = "DIR",
         .help = "put a backup in the place of what the state folder has, and end",
         .kind = OPTION_TEXT,
         .target = &config->restore_from},
        {.name = "check",
         .command_line_only = true,
         .value_name = "DIR",
         .help = "look whether a state folder or a backup is whole, and end",
         .kind = OPTION_TEXT,
         .target = &config->check},
        {.name = "log-level",
         .value_name = "LEVEL",
         .help = "error, warning, info or debug (default info)",
         .kind = OPTION_TEXT,
         .target = &config->log_level,
         .choices = "error|warning|info|debug"},
        {.name = "config",
         .command_line_only = true,
         .value_name = "FILE",
         .help = "read this file of settings alone; none: no file (default: " SETTINGS_CONTROLLER
                 " in ~/.config/gpuctl, then in /etc/gpuctl)",
         .kind = OPTION_TEXT,
         .target = &config->file},
        {.name = "check-config",
         .command_line_only = true,
         .help = "say whether the settings are sound, and end",
         .kind = OPTION_FLAG,
         .target = &config->check_config},
        {.name = "version",
         .command_line_only = true,
         .help = "show the version",
         .kind = OPTION_FLAG,
         .target = &config->version},
        {.letter = 'h',
         .command_line_only = true,
         .name = "help",
         .help = "show this",
         .kind = OPTION_FLAG,
         .target = &config->help},
    };
    memcpy(table, filled, sizeof filled);
}

bool config_is_loopback(const char *address)
{
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, address, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    return inet_pton(AF_INET6, address, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* Splits "127.0.0.1:7070" or "[::1]:7070". */
static bool split_listen(struct config *config, struct err *err)
{
    const char *colon = strrchr(config->listen, ':');
    const char *begin = config->listen;
    size_t length = colon != NULL ? (size_t)(colon - begin) : 0;
    if (length > 2 && begin[0] == '[' && begin[length - 1] == ']') {
        begin++;
        length -= 2;
    }
    int64_t port;
    unsigned char bytes[16];
    snprintf(config->address, sizeof config->address, "%.*s", (int)length, begin);
    if (colon == NULL || length >= sizeof config->address || !text_to_int(colon + 1, 0, 65535, &port) ||
        (inet_pton(AF_INET, config->address, bytes) != 1 &&
         inet_pton(AF_INET6, config->address, bytes) != 1)) {
        return err_field(err, ERR_USAGE, "--listen", "write 127.0.0.1:7070 or [::1]:7070",
                         "\"%s\" is not an address and a port", config->listen);
    }
    config->port = (uint16_t)port;
    return true;
}

/* These policies suspend any job at any time and resume it later without loss, which real programs cannot
 * do. */
static bool suspends(enum policy policy)
{
    return policy == POLICY_SRTF || policy == POLICY_SRSF;
}

static bool read_policy(struct config *config, struct err *err)
{
    const char *name = config->policy_name;
    if (name == NULL) {
        return true;
    }
    if (!policy_from_text(name, &config->policy)) {
        return err_field(err, ERR_USAGE, "--policy", "give default, unless you know better",
                         "--policy must be fifo, easy, sjf or default, not \"%.64s\"", name);
    }
    return !suspends(config->policy) ||
           err_field(err, ERR_USAGE, "--policy", "give default; see what it would do with gpuctl simulate",
                     "%s suspends any job at any time: it is for gpuctl simulate alone", name);
}

static bool check_registries(const struct config *config, struct err *err)
{
    for (size_t i = 0; i < config->image_registries.count; i++) {
        const char *registry = config->image_registries.items[i];
        if (registry[0] == '\0' || registry[strcspn(registry, "/@, ")] != '\0') {
            return err_field(err, ERR_USAGE, "--image-registry", "give registry.example.com, for instance",
                             "%.200s is not the host of a registry", registry);
        }
    }
    return true;
}

static bool check_oidc(struct config *config, struct err *err)
{
    struct issuer_config *oidc = &config->oidc;
    oidc->roles =
        (struct group_roles){(const char *const *)config->oidc_roles.items, config->oidc_roles.count};
    if (oidc->rules.issuer == NULL) {
        return (oidc->rules.client_id == NULL && oidc->roles.count == 0) ||
               err_field(err, ERR_USAGE, "--oidc-issuer", "give it, too",
                         "--oidc-client-id and --oidc-role are for an identity provider, and there is none");
    }
    if (!fetch_is_safe(oidc->rules.issuer)) {
        return err_field(err, ERR_USAGE, "--oidc-issuer", "give https://login.example.org, for instance",
                         "--oidc-issuer is no https URL");
    }
    if (oidc->rules.client_id == NULL || *oidc->rules.client_id == '\0') {
        return err_field(err, ERR_USAGE, "--oidc-client-id", "make a public client there, for gpuctl alone",
                         "--oidc-issuer needs --oidc-client-id");
    }
    if (oidc->life_ms < 1000 || oidc->life_ms > LIMIT_LOGIN_LIFE_MS) {
        return err_field(err, ERR_USAGE, "--login-life", "give 12h, for instance",
                         "the token of a login is valid for a second to 7 days");
    }
    if (oidc->roles.count == 0) {
        return err_field(err, ERR_USAGE, "--oidc-role",
                         "give ml-team=user, for instance, or *=user for everybody",
                         "without --oidc-role nobody who logs in has a role here");
    }
    return group_roles_check(&oidc->roles, err);
}

/* Only looks whether the address is one. */
static bool read_object_store(struct config *config, struct err *err)
{
    struct s3_address address;
    if (config->object_spool != NULL && !text_to_size(config->object_spool, &config->object_spool_bytes)) {
        return err_field(err, ERR_USAGE, "--object-store-spool", "write 16GiB, for instance",
                         "\"%s\" is no size", config->object_spool);
    }
    if (config->object_store == NULL) {
        return true;
    }
    bool ok = s3_address_parse(config->object_store, &address, err);
    s3_address_finish(&address);
    return ok;
}

static bool check(struct config *config, struct err *err)
{
    if (!split_listen(config, err)) {
        return false;
    }
    if (!read_object_store(config, err)) {
        return false;
    }
    config->min_free_bytes = -1;
    if (config->min_free != NULL && !text_to_size(config->min_free, &config->min_free_bytes)) {
        return err_field(err, ERR_USAGE, "--min-free", "write 256MiB or 2GiB", "\"%s\" is not a size",
                         config->min_free);
    }
    if ((config->tls_certificate == NULL) != (config->tls_key == NULL)) {
        return err_field(err, ERR_USAGE, "--tls-cert", "give both",
                         "--tls-cert and --tls-key belong together");
    }
    if (config->share_half_life_ms < 60000 || config->share_half_life_ms > LIMIT_SHARE_HALF_LIFE_MS) {
        return err_field(err, ERR_USAGE, "--share-half-life", "give 7d, for instance",
                         "the half-life of past use must be from a minute to a year");
    }
    if (config->otlp_endpoint != NULL && !collector_is_endpoint(config->otlp_endpoint)) {
        return err_field(err, ERR_USAGE, "--otlp-endpoint",
                         "give http://collector.example.org:4318, for instance; secrets go to --otlp-headers",
                         "--otlp-endpoint is not the address of a collector");
    }
    if (config->otlp_headers != NULL && config->otlp_endpoint == NULL) {
        return err_field(err, ERR_USAGE, "--otlp-headers", "give --otlp-endpoint, too",
                         "--otlp-headers are for a collector, and there is none");
    }
    if ((config->backup_to != NULL) + (config->restore_from != NULL) + (config->check != NULL) > 1) {
        return err_field(err, ERR_USAGE, "--backup", "do one after the other",
                         "only one of --backup, --restore and --check can be given");
    }
    if (config->patience_ms < 100) {
        return err_field(err, ERR_USAGE, "--client-patience", "give 10s, for instance",
                         "no client sends its headers that fast");
    }
    if (config->webhook_pause_ms < 10 || config->webhook_pause_ms > LIMIT_WEBHOOK_PAUSE_MS) {
        return err_field(err, ERR_USAGE, "--webhook-pause", "give 5s, for instance",
                         "the pause must be from 10 ms to 10 minutes");
    }
    if (config->heartbeat_ms < 50) {
        return err_field(err, ERR_USAGE, "--beat", "give 50ms or more", "nodes cannot report that often");
    }
    return check_registries(config, err) && check_oidc(config, err) &&
           networks_parse("--webhook-networks", config->webhook_networks, &config->networks, err);
}

bool config_parse(int argc, char **argv, struct config *ret_config, struct err *err)
{
    *ret_config = (struct config){
        .state = "/var/lib/gpuctl",
        .listen = "127.0.0.1:7070",
        .heartbeat_ms = HEARTBEAT_MS,
        .webhook_pause_ms = DEFAULT_WEBHOOK_PAUSE_MS,
        .oidc = {.rules = {.user_claim = DEFAULT_USER_CLAIM, .groups_claim = DEFAULT_GROUPS_CLAIM},
                 .scopes = DEFAULT_OIDC_SCOPES,
                 .life_ms = DEFAULT_LOGIN_LIFE_MS},
        .lease_min_ms = LIMIT_LEASE_MIN_MS,
        .patience_ms = DEFAULT_PATIENCE_MS,
        .request_wait_ms = DEFAULT_REQUEST_WAIT_MS,
        .log_limit_mib = LIMIT_STREAM_BYTES / MIB,
        .checkpoint_limit_gib = DEFAULT_CHECKPOINT_GIB,
        .upload_quota_mib = DEFAULT_UPLOAD_QUOTA_BYTES / MIB,
        .share_half_life_ms = DEFAULT_SHARE_HALF_LIFE_MS,
        .policy = POLICY_DEFAULT,
        .idle_after_ms = DEFAULT_IDLE_AFTER_MS,
        .keep_jobs_ms = DEFAULT_KEEP_JOBS_MS,
        .keep_logs_ms = DEFAULT_KEEP_LOGS_MS,
        .keep_nodes_ms = DEFAULT_KEEP_NODES_MS,
        .keep_usage_ms = DEFAULT_KEEP_USAGE_MS,
        .keep_audit_ms = DEFAULT_KEEP_AUDIT_MS,
        .logs_share_percent = DEFAULT_LOGS_SHARE,
        .object_after_ms = DEFAULT_OBJECT_AFTER_MS,
        .object_spool_bytes = DEFAULT_OBJECT_SPOOL_BYTES,
        .backup_interval_ms = DEFAULT_BACKUP_INTERVAL_MS,
        .backup_keep = DEFAULT_BACKUP_KEEP};
    struct option_spec table[OPTION_COUNT];
    table_fill(ret_config, table);
    char **rest = NULL;
    size_t rest_count = 0;
    bool given[OPTION_COUNT] = {false};
    bool ok = options_parse(table, OPTION_COUNT, argc, argv, false, given, &rest, &rest_count, err);
    if (ok && rest_count > 0) {
        ok = err_field(err, ERR_USAGE, NULL, "see --help", "gpuctld takes no argument \"%s\"", rest[0]);
    }
    free(rest);
    if (!ok || ret_config->help || ret_config->version) {
        return ok;
    }
    ret_config->settings = settings_load(SETTINGS_CONTROLLER, ret_config->file, err);
    if (ret_config->settings == NULL ||
        !settings_apply(ret_config->settings, table, OPTION_COUNT, given, err)) {
        return false;
    }
    enum log_level level;
    if (ret_config->log_level != NULL && log_level_from_text(ret_config->log_level, &level)) {
        log_set_level(level);
    }
    return read_policy(ret_config, err) && check(ret_config, err);
}

void config_finish(struct config *config)
{
    options_finish_list(&config->host_names);
    options_finish_list(&config->oidc_roles);
    options_finish_list(&config->image_registries);
    settings_destroy(config->settings);
}

void config_help(void)
{
    struct config unused = {0};
    struct option_spec table[OPTION_COUNT];
    table_fill(&unused, table);
    options_help(
        stdout, "gpuctld [OPTIONS]",
        "The controller of gpuctl: serves the REST API, keeps jobs in SQLite, and gives work to the "
        "nodes' agents.\nEach option is also a setting: a line `name = value` of " SETTINGS_CONTROLLER
        ", and GPUCTL_<NAME> in the environment.",
        table, OPTION_COUNT);
}
