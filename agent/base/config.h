/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's configuration: options, settings, and values derived from them. */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/address.h"
#include "proto/base/err.h"
#include "proto/base/settings/options.h"
#include "proto/base/settings/settings.h"

struct config {
    const char *url;
    const char *token_file;
    const char *name;
    char *unique;       /* owned; the name and a hash of state, unique among the agents of this host */
    char *state;        /* owned, absolute */
    char *run;          /* owned, absolute */
    char *environments; /* owned, absolute */
    int64_t environments_gib, images_gib;
    int64_t log_limit_mib; /* of one stream; the controller may allow less */
    int64_t checkpoint_still_s;
    int64_t kept_gib;           /* of the files that a rank keeps */
    const char *devices;        /* "all", "none", or a list */
    const char *gpu_type;       /* or NULL */
    const char *pool;           /* or NULL */
    json_t *labels;             /* owned, or NULL */
    struct option_list volumes; /* NAME=PATH[:ro][:mount], checked */
    int64_t inputs_bytes;       /* what inputs of jobs may take */
    bool input_plain_http;
    const char *input_networks; /* checked; or NULL */
    const char *s3_endpoint;    /* checked; or NULL */
    const char *s3_region;
    char *python;          /* owned; absolute, or a name in PATH; or NULL */
    char *cacert;          /* owned, absolute; or NULL */
    int64_t token_life_ms; /* after which the node's token is renewed; 0: never */
    int64_t cpu_slots;     /* 0: GPUs */
    int64_t warm_mib;      /* memory for warm workers; 0: there are none */
    const char *preload;   /* modules that warm workers import */
    int64_t sample_s;      /* between two samples of an attempt; 0: none is taken */
    int64_t max_processes; /* limit of an attempt for each of its devices */
    int64_t cpus;          /* that jobs may have; 0: all */
    int64_t memory_bytes;  /* likewise; 0: nearly all */
    int64_t expires_at_ms; /* wall clock: when this machine is taken back; 0: never */
    int64_t idle_exit_ms;  /* without work, after which the agent ends; 0: never */
    int64_t port_first, port_last;
    char address[ADDRESS_BYTES];   /* numeric --address; "" if not given */
    char controller_host[256];     /* host of url */
    bool host_memory;              /* ranks use the host's shared memory */
    bool as_owner;                 /* ranks run as the users that own the jobs, not as the agent's */
    bool seccomp;                  /* these ranks are refused some system calls */
    int64_t user_first, user_last; /* numbers for owners that this host does not know */
    bool reserved;
    bool ephemeral;       /* the node goes with its agent */
    bool temporary_state; /* state is a new folder, which the agent makes, and removes at its end */
    bool insecure_plain_http;
    bool list_devices; /* the command only lists devices: name, folders and controller are not set */
    struct settings *settings;
    char *own_name; /* owned: that of the host, or made of it */
};

/* Options as they were given. */
struct config_given {
    const char *state, *run, *environments, *address, *ports, *expires_at, *log_level, *shared_memory, *file,
        *python, *cacert, *run_as, *user_ids, *memory, *seccomp, *input_limit;
    struct option_list labels;
    bool help, version, check_config;
};

/* The table of all options, with their targets in *config and *given. */
#define CONFIG_OPTIONS 48
void config_table(struct config *config, struct config_given *given,
                  struct option_spec table[CONFIG_OPTIONS]);
/* Completes and checks the part that joining needs: name and url. */
bool config_check(struct config *config, struct err *err);
/* The values that hold unless the command line or a setting gives others. */
void config_defaults(struct config *ret_config);

/* Reads the command line and the settings. *ret_done: --help, --version or --check-config was given and
 * answered. */
bool config_read(int argc, char **argv, struct config *ret_config, bool *ret_done, struct err *err);
void config_finish(struct config *config);

#endif
