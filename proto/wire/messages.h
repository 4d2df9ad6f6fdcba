/* SPDX-License-Identifier: Apache-2.0 */
/* What controller and agent say to each other, one encode and one decode each. Decoding is tolerant: unknown
 * members are ignored, so that neighbouring versions understand each other. Strings of a decoded message are
 * borrowed from its json, which the message owns; arrays are owned by the message; *_finish frees both.
 * Encoding borrows and returns a new reference. */
#ifndef PROTO_MESSAGES_H
#define PROTO_MESSAGES_H

#include <jansson.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/hash.h"
#include "proto/wire/staging.h"
#include "proto/states.h"
#include "proto/wire/timing.h"

/* --- POST /v1/agent/register ---------------------------------------------------------------------------- */

struct device {
    int64_t index;        /* as CUDA counts it on that node; slots count from 0 */
    const char *uuid;     /* of the GPU, or "slot-<n>" */
    const char *type;     /* "A10", "H100", "cpu" */
    int64_t memory_bytes; /* 0 for slots */
    int64_t group; /* devices that reach each other fastest share it: NVLink domain, NUMA node; -1: unknown */
};

/* A device that the node has, and that no job can get now. */
struct device_fault {
    int64_t index;
    const char *reason; /* for people, one line of at most LIMIT_DEVICE_REASON bytes */
};

/* All such devices of a node, as far as a message says. Borrowed in an encode, items owned after a decode. */
struct device_faults {
    bool told; /* false: the message says nothing of them, as those of earlier agents; all stays as it was */
    struct device_fault *items;
    size_t count;
};

/* An attempt that lives on the node, or whose exit was not yet acknowledged. */
struct node_attempt {
    uint64_t attempt_id;
    enum member_state state;
};

struct register_message {
    json_t *json;
    int64_t protocol;     /* proto/wire/protocol.h; PROTOCOL_FIRST where the agent does not say */
    const char *name;     /* of the node; unique in the cluster */
    const char *boot_id;  /* of the kernel */
    const char *agent_id; /* of the agent's state folder: two agents of one name differ; NULL: not said */
    const char *host_id;  /* SHA-256 of the machine id: agents on one host share it */
    const char *version;
    const char *address; /* where ranks on this node can be reached by the other nodes */
    const char *pool;    /* NULL: "default", or "reserved" with reserved */
    bool reserved;
    bool slots; /* devices are CPU slots, not GPUs */
    enum isolation isolation;
    int64_t expires_at_ms; /* wall clock: when its provider takes it back; 0: never */
    const json_t *labels;  /* object of strings (proto/spec/node_label.h), or NULL */
    struct device *devices;
    size_t device_count;
    struct device_faults faults; /* not told: there are none */
    struct node_attempt *attempts;
    size_t attempt_count;
    bool has_nonce; /* false: an agent that knows of no nonce, and is believed at once */
    uint64_t nonce; /* that of the last reply that gave one; 0: none yet */
};

/* A node that is known registers in two steps: the first reply gives a nonce, and only the message that
 * repeats it is taken. So one that was under way for long, or comes twice, changes nothing. */
struct register_reply {
    json_t *json;
    uint64_t nonce; /* not taken: register again with it; 0: taken */
    int64_t incarnation;
    int64_t heartbeat_ms;
    int64_t park_ms;   /* how long the controller holds a poll */
    int64_t log_limit; /* bytes of one stream that it takes */
};

/* --- POST /v1/agent/join -------------------------------------------------------------------------------- */

/* A node trades a join token for a token of its own, of whose secret it tells the hash alone. The same again
 * has the same answer, as long as the join token lasts. */
struct join_message {
    json_t *json;
    const char *token;          /* the join token */
    const char *name;           /* of the node to be */
    uint8_t secret[HASH_BYTES]; /* SHA-256 of the secret's characters (proto/wire/token.h) */
};

struct join_reply {
    json_t *json;
    const char *token_id; /* the token is gct_<token_id>_<secret> */
    const char *pool;     /* that the node is to be in; NULL: as its agent says */
    bool reserved;
};

/* --- POST /v1/agent/beat -------------------------------------------------------------------------------- */

/* A GPU of an attempt, as it was when it was last looked at; -1: not known. */
struct gpu_sample {
    int64_t busy_percent; /* of the time */
    int64_t memory_bytes, memory_total_bytes;
    int64_t power_mw;
};

/* What an attempt uses on the node at a moment; -1: not known. */
struct sample {
    uint64_t attempt_id;
    int64_t at_ms;                            /* wall clock */
    int64_t step;                             /* seconds since its ranks were started on the node */
    double cpu_percent;                       /* since the sample before, of all CPUs of the node */
    int64_t memory_bytes, memory_total_bytes; /* the latter of the node */
    struct gpu_sample *gpus;                  /* owned, in the order in which the attempt numbers them */
    size_t gpu_count;
};

struct heartbeat_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id; /* as in register, here and in poll and report */
    int64_t seq;
    struct device_faults faults;
    struct node_attempt *attempts;
    size_t attempt_count;
    struct sample *samples; /* none from an agent that does not measure */
    size_t sample_count;
};
/* 404 not_found means: register again. */

/* messages_sample.c, for messages_agent.c: the member "samples" of a heartbeat, at most LIMIT_SAMPLES, each
 * of at most LIMIT_SAMPLE_GPUS. After a decode, also one that failed, samples_free frees them. */
void samples_put(json_t *json, const struct sample *samples, size_t count);
bool samples_decode(const json_t *json, struct sample **ret_samples, size_t *ret_count, struct err *err);
void samples_free(struct sample *samples, size_t count);

struct heartbeat_reply {
    json_t *json;
    uint64_t *fenced; /* of the attempt ids that the heartbeat listed, those that the node is not to have any
                         more */
    size_t fenced_count;
};

/* --- POST /v1/agent/poll -------------------------------------------------------------------------------- */

struct poll_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id;
    uint64_t version; /* of the last reply that was worked in; 0 after a start */
};

struct order {
    uint64_t attempt_id;
    enum order_phase phase;
    const char *job_id;
    int64_t attempt; /* 1 for the first */
    int64_t node_rank, nodes;
    int64_t first_rank, local_ranks, world;
    const int64_t *devices; /* indices on this node; owned after a decode */
    size_t device_count;
    const char *master_address; /* NULL in PREPARE, and where there is no rendezvous */
    int64_t master_port;        /* 0 likewise */
    const char *addresses; /* of START: "ADDRESS:PORT,ADDRESS:PORT" of all nodes by node rank, port 0 where a
                              node holds none; NULL: not known, or too many */
    int64_t grace_ms;      /* of STOP: between TERM and KILL */
    int64_t lease_ms;      /* 0 with on_disconnect = keep */
    enum cause cause;      /* of STOP: why */
    /* Of START and RUN: the ranks are to be warned with it, once. Of STOP: they get it instead of TERM, which
     * follows after the grace. EARLY_NONE: neither. */
    enum early_signal signal;
    bool gang; /* ranks need a rendezvous: the master port is held on node rank 0 */
    /* What ranks that track with MLflow are to use: a token of this attempt alone, and its run. NULL in STOP,
     * and from a controller that does not track. */
    const char *tracking_token, *tracking_run_id;
    const char *array_id; /* of the array that the job is a task of; NULL: of none */
    int64_t task, tasks;  /* its number, from 0, and how many there are */
    json_t *spec; /* the job spec, of a task that of its array; absent in STOP. Borrowed in an encode, part of
                     json after a decode */
};

struct poll_reply {
    json_t *json;
    uint64_t version;
    bool shutdown; /* the embedded controller ends: so do its agents */
    /* Wall clock: the controller was put back, lately, from a backup, and asks once what the node has run
     * since that was taken. 0: it was not. */
    int64_t restored_ms, journal_since_ms;
    uint64_t *live; /* every attempt id that this node should hold; any other is fenced and killed */
    size_t live_count;
    struct order *orders; /* those that changed since the poll's version */
    size_t order_count;
    struct staging *stagings; /* all that the node should be getting ready; any other is stopped. An encode
                                 borrows their json alone; owned after a decode */
    size_t staging_count;
};

/* --- POST /v1/agent/report ------------------------------------------------------------------------------ */

struct rank_exit {
    int64_t rank;                 /* global rank; the node rank in node mode */
    int64_t code;                 /* exit code; 128+signal when killed by one */
    int64_t signal;               /* 0: none */
    int64_t at_ms;                /* wall clock of the node */
    int64_t out_bytes, err_bytes; /* final sizes of its two streams */
    bool by_us;                   /* killed by our kill ladder, so not to blame */
};

struct log_tail {
    int64_t rank;
    enum stream stream;
    int64_t offset;
    const char *base64;
};

/* What a rank left in $GPUCTL_RESULT_DIR, or in its error file. */
struct rank_result {
    int64_t rank;
    enum result_kind kind;
    int64_t size;       /* of the pickle */
    const char *hash;   /* its SHA-256 in hex; NULL: there is an error file only */
    const char *base64; /* the pickle itself where it is small; NULL: it was put as a blob before */
    const char *json; /* VALUE: the same as JSON text, where it is; EXCEPTION: the error file, which is JSON,
                         of LIMIT_ERROR_FILE_BYTES at most; else NULL */
    /* Of the receiver, before it goes to the core; not on the wire. */
    const uint8_t *digest; /* hash, decoded; NULL as hash is */
    const void *bytes;     /* base64, decoded and found to have the hash; NULL as base64 is */
};

struct report_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id;
    uint64_t attempt_id;
    enum report_kind kind;
    const char *address;     /* PREPARED by node rank 0 */
    int64_t master_port;     /* PREPARED by node rank 0, and RUNNING of a gang on one node */
    int64_t at_ms;           /* RUNNING: wall clock when the last rank was started */
    enum cause cause;        /* DECLINED, FAILED, EXITED: what went wrong, CAUSE_NONE when nothing did */
    const char *text;        /* the cause for people, NULL when there is nothing to add */
    struct rank_exit *ranks; /* FAILED: the first that failed; EXITED: all that were started */
    size_t rank_count;
    struct log_tail *tails; /* EXITED: the last log bytes, LIMIT_EXIT_TAIL_BYTES in all */
    size_t tail_count;
    int64_t checkpoint_ms; /* EXITED: wall clock when a rank last acknowledged a checkpoint; 0: none did */
    bool flushed;          /* EXITED: with these tails every byte of the streams has been sent */
    const char *said; /* FAILED, EXITED: what the first failed rank's error file says, where none failed what
                         the node remarks, one line; or NULL */
    struct rank_result *results; /* EXITED; in order of rank */
    size_t result_count;
    const char *start; /* RUNNING, EXITED: how the ranks were started, for people: "warm", "cold" and why;
                          at most LIMIT_START_TEXT bytes; NULL: not said */
    struct node_timing timing;   /* PREPARED, RUNNING, EXITED: as far as it is known by then */
    struct device_faults faults; /* DECLINED, EXITED: told where there are any */
    /* Of the receiver, before it goes to the core, CLOCK_BOOTTIME; not on the wire. When the node was last
     * sent PREPARE of this attempt id, and RUN or START; 0: not since the controller was started. */
    int64_t prepare_sent_us, start_sent_us;
};

/* --- POST /v1/agent/staging ----------------------------------------------------------------------------- */

struct staging_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *key;
    enum staging_state state;
    bool by_user; /* FAILED: it would fail on any node, for what was asked for is not to be had */
    bool lasting; /* FAILED: it stays so on this node, until its agent starts anew */
    const char
        *text; /* BUILDING: what is being done, one line; FAILED: why, several lines perhaps; or NULL */
};
/* The reply is {}; 404 not_found means: register again. BUILDING need not be repeated. */

/* --- POST /v1/agent/journal ----------------------------------------------------------------------------- */

/* An attempt that the node has claimed. */
struct journal_entry {
    uint64_t attempt_id;
    const char *job_id;
    int64_t began_ms, ended_ms; /* wall clock of the node; 0: not known to have ended */
    int64_t code;               /* the largest exit code of its ranks here; -1: not known */
};

/* At most LIMIT_JOURNAL_ENTRIES; the rest follows. */
struct journal_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    struct journal_entry *entries;
    size_t entry_count;
};
/* The reply is {"unknown": how many of them no database knows}; 404 not_found means: register again. */

struct log_reply {
    json_t *json;
    int64_t received; /* the controller has the stream up to here */
    int64_t durable;  /* and it is on disk up to here: the agent may delete below */
};

#define MESSAGE_DECLARE(name)                                                                                \
    json_t *name##_encode(const struct name *message);                                                       \
    /* Takes over json in any case; ERR_FIELD names the member. */                                           \
    bool name##_decode(json_t *json, struct name *ret_message, struct err *err);                             \
    void name##_finish(struct name *message);
MESSAGE_DECLARE(register_message) /* that of a protocol which is not ours is refused before all else */
MESSAGE_DECLARE(register_reply)
MESSAGE_DECLARE(join_message)
MESSAGE_DECLARE(join_reply)
MESSAGE_DECLARE(heartbeat_message)
MESSAGE_DECLARE(heartbeat_reply)
MESSAGE_DECLARE(poll_message)
MESSAGE_DECLARE(poll_reply)
MESSAGE_DECLARE(report_message)
MESSAGE_DECLARE(staging_message)
MESSAGE_DECLARE(journal_message)
MESSAGE_DECLARE(log_reply)

#endif
