/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and settings of gpuctld. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/identity/issuer.h"
#include "proto/base/http/networks.h"
#include "proto/base/err.h"
#include "proto/base/settings/options.h"
#include "proto/base/settings/settings.h"
#include "proto/states.h"

struct config {
    const char *state;                     /* state folder: everything that is kept */
    const char *listen;                    /* HOST:PORT */
    const char *endpoint_file;             /* file that gets {"url", "pid"}; NULL: none */
    const char *tls_certificate, *tls_key; /* PEM files; both NULL: plain HTTP */
    bool insecure_plain_http;
    struct option_list host_names; /* further names accepted in the Host header */
    int64_t idle_exit_ms;          /* 0: never */
    int64_t heartbeat_ms;
    int64_t lease_min_ms;
    int64_t patience_ms;
    int64_t log_limit_mib;
    int64_t checkpoint_limit_gib;
    int64_t upload_quota_mib;
    int64_t per_address;     /* 0: half of all connections */
    int64_t request_wait_ms; /* 0: senders have no shares */
    int64_t share_half_life_ms;
    const char *policy_name; /* as written */
    enum policy policy;
    const char *object_store, *object_credentials; /* NULL: not given */
    int64_t object_after_ms;
    const char *object_spool; /* as written; NULL: not given */
    int64_t object_spool_bytes;
    const char *min_free;   /* as written: "256MiB"; NULL: not given */
    int64_t min_free_bytes; /* -1: chosen by the size of the disk */
    int64_t idle_after_ms;  /* 0: never */
    int64_t keep_jobs_ms, keep_logs_ms, keep_nodes_ms, keep_runs_ms, keep_usage_ms,
        keep_audit_ms;                        /* 0: for ever */
    const char *prices, *currency;            /* or NULL */
    const char *otlp_endpoint, *otlp_headers; /* or NULL */
    int64_t logs_share_percent;               /* of the disk */
    struct issuer_config oidc;                /* the identity provider; its roles are of oidc_roles */
    struct option_list oidc_roles;
    const char *webhook_networks; /* as written, or NULL */
    struct option_list image_registries;
    int64_t webhook_pause_ms;
    const char *public_url;     /* NULL: it follows from the names */
    const char *backup_folder;  /* NULL: STATE/backups */
    int64_t backup_interval_ms; /* 0: no automatic backups */
    int64_t backup_keep;
    /* Actions instead of serving, at most one; all NULL: serve. */
    const char *backup_to;    /* make this backup */
    const char *restore_from; /* restore this backup */
    const char *check;        /* check this state folder or backup */
    const char *log_level;    /* NULL: info */
    bool embedded;
    const char *file; /* settings file that replaces the usual ones; NULL: the usual ones */
    bool check_config;
    bool help, version;
    struct settings *settings; /* owned; NULL with help or version */

    /* Parsed from listen. */
    char address[64];
    uint16_t port;
    struct networks networks; /* parsed from webhook_networks */
};

/* Fills *ret_config from argv, the settings, and defaults. ERR_USAGE names the option. */
bool config_parse(int argc, char **argv, struct config *ret_config, struct err *err);
void config_finish(struct config *config);

/* Writes --help to stdout. */
void config_help(void);

/* true when the address is one that only this host reaches. */
bool config_is_loopback(const char *address);

#endif
