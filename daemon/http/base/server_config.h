/* SPDX-License-Identifier: Apache-2.0 */
/* How a server is opened, and why it ends. */
#ifndef HTTP_SERVER_CONFIG_H
#define HTTP_SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/retention/old_jobs.h"
#include "daemon/writer/writer.h"

struct exporter;
struct issuer_config;
struct networks;
struct notify;
struct reserve_file;

/* Strings are borrowed for as long as the server lives. */
struct server_config {
    const char *address;                     /* to listen on: an IPv4 or IPv6 address; NULL: 127.0.0.1 */
    uint16_t port;                           /* 0: any that is free */
    struct writer *writer;                   /* open; outlives the server */
    struct checkpoints *checkpoints;         /* the same */
    struct logs *logs;                       /* daemon/blob; open, outlive the server; NULL: no log store */
    struct blobs *blobs;                     /* NULL: no blob store */
    struct worker *worker;                   /* whose finished tasks the server collects; NULL: none */
    struct notify *notify;                   /* of the webhooks; outlives the server; NULL: none */
    const struct issuer_config *issuer;      /* the identity provider that people log in with; NULL: none */
    const struct networks *webhook_networks; /* private ones that webhooks may name; NULL: none */
    const char *const *image_registries;     /* that images may come from */
    size_t image_registry_count;             /* 0: from any */
    const char *store_path;                  /* of the database: the server opens one reader */
    const char *state_directory;             /* whose file system must keep min_free_bytes */
    int64_t min_free_bytes; /* below it submissions and blobs are refused; 0: never, -1: as fits the disk */
    struct reserve_file *reserve_file; /* of the store, outlives the server; NULL: none */
    const char *tls_certificate;       /* PEM texts; both NULL: plain HTTP */
    const char *tls_key;
    const char *tls_authority; /* that signed the certificate, PEM, for those who join; NULL: none of ours */
    const char *const
        *host_names; /* allowed in the Host header besides loopback names and the listen address */
    size_t host_name_count;
    uint32_t incarnation;           /* store_incarnation */
    int64_t heartbeat_ms;           /* how often nodes send heartbeats; 0: HEARTBEAT_MS */
    enum policy policy;             /* of the writer's core: told to those who ask for the version */
    int64_t patience_ms;            /* with clients that send or read slowly; 0: DEFAULT_PATIENCE_MS */
    const char *object_store;       /* s3://...; NULL: files alone */
    const char *object_credentials; /* a file; NULL: the environment has them */
    int64_t object_after_ms, object_spool_bytes;
    int64_t log_limit;       /* bytes of one stream of one rank; 0: LIMIT_STREAM_BYTES */
    int64_t upload_quota;    /* bytes that a person may send before jobs name them; 0: the default */
    int64_t per_address;     /* connections that one address may hold; 0: half of all */
    int64_t request_wait_ms; /* of a request whose sender has used its share; 0: there are no shares */
    int64_t lease_min_ms;    /* the smallest lease of a job spec; 0: LIMIT_LEASE_MIN_MS */
    int64_t
        idle_exit_ms; /* ends by itself after this long without live jobs and people's requests; 0: never */
    bool embedded;    /* the agents are this instance's own: they are told to end when it ends by idleness or
                         shutdown */
    struct retention_ages ages; /* how long jobs and their output stay */
    int64_t keep_nodes_ms;      /* the same of nodes that are not heard; 0: for ever */
    int64_t keep_usage_ms;      /* the same of hours of use; 0: for ever */
    int64_t keep_audit_ms;      /* the same of the audit; 0: for ever */
    const char *prices;         /* as prices.h has them; NULL: none */
    const char *currency;       /* of these; or NULL */
    struct exporter *exporter;  /* daemon/traces; open, outlives the server; NULL: no traces are sent */
    int64_t logs_share_percent; /* of the disk; 0: all of it */
    const char *backup_shelf;   /* folder of backups; NULL: none are made */
    int64_t backup_interval_ms; /* 0: only when somebody asks for one */
    int64_t backup_keep;
    int64_t restored_ms, restored_from_ms; /* store_restored */
    int signal_fd; /* a signalfd: server_run ends when it is readable; -1: none. The server does not close it
                    */
};

enum server_end {
    SERVER_END_SIGNAL,   /* signal_fd became readable */
    SERVER_END_SHUTDOWN, /* POST /v1/shutdown */
    SERVER_END_IDLE,     /* idle_exit_ms is over */
    SERVER_END_FAILED,   /* a commit failed: the process must end without touching the store again */
};

#endif
