/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between controller and agent, with one encode and one decode each. Decoding ignores unknown
 * members, so that neighbouring versions understand each other. Strings of a decoded message are borrowed
 * from its json, which the message owns; the message owns its arrays, too; *_finish frees both. Encoding
 * borrows and returns a new reference. */
#ifndef PROTO_MESSAGES_H
#define PROTO_MESSAGES_H

#include <jansson.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"
#include "proto/wire/staging.h"
#include "proto/states.h"
#include "proto/wire/timing.h"

/* --- POST /v1/agent/register ---------------------------------------------------------------------------- */

struct device {
    int64_t index;        /* CUDA's index on that node; slots count from 0 */
    const char *uuid;     /* of the GPU, or "slot-<n>" */
    const char *type;     /* "A10", "H100", "cpu" */
    int64_t memory_bytes; /* 0 for slots */
    int64_t group; /* shared by devices with the fastest links: NVLink domain, NUMA node; -1: unknown */
};
json_t *device_encode(const struct device *device);

/* A device of the node that no job can get now. */
struct device_fault {
    int64_t index;
    const char *reason; /* for people, one line of at most LIMIT_DEVICE_REASON bytes */
};

/* All unavailable devices of a node, if the message lists them. An encode borrows items; a decode owns
 * them. */
struct device_faults {
    bool told; /* false: the message has no list, as from earlier agents, and the known faults stay */
    struct device_fault *items;
    size_t count;
};

/* An attempt that is live on the node, or whose exit is not yet acknowledged. */
struct node_attempt {
    uint64_t attempt_id;
    enum member_state state;
    int64_t idle_ms; /* how long its GPUs there have been nearly unused; 0: they are used; -1: not known */
};

struct register_message {
    json_t *json;
    int64_t protocol;     /* proto/wire/protocol.h; PROTOCOL_FIRST if the agent does not say */
    const char *name;     /* of the node; unique in the cluster */
    const char *boot_id;  /* of the kernel */
    const char *agent_id; /* of the agent's state folder: two agents of one name differ; NULL: not said */
    const char *host_id;  /* SHA-256 of the machine id: agents on one host share it */
    const char *version;
    const char *address; /* where other nodes reach the ranks on this node */
    const char *pool;    /* NULL: "default", or "reserved" if reserved is set */
    bool reserved;
    bool slots;                      /* devices are CPU slots instead of GPUs */
    int64_t millicpus, memory_bytes; /* that jobs may have, thousandths of CPUs; 0: the agent does not say */
    enum isolation isolation;
    int64_t expires_at_ms; /* wall clock: when the provider takes the node back; 0: never */
    const json_t *labels;  /* object of strings (proto/spec/node_label.h), or NULL */
    struct device *devices;
    size_t device_count;
    struct device_faults faults; /* not told: no faults */
    struct node_attempt *attempts;
    size_t attempt_count;
    bool has_nonce; /* false: an agent that has no nonces and is accepted at once */
    uint64_t nonce; /* from the newest reply that had one; 0: none yet */
};

/* A known node registers in two steps: the first reply gives a nonce, and only the message that repeats the
 * nonce is accepted. So a delayed or duplicated message changes nothing. */
struct register_reply {
    json_t *json;
    uint64_t nonce; /* not accepted: register again with this nonce; 0: accepted */
    int64_t incarnation;
    int64_t heartbeat_ms;
    int64_t park_ms;   /* how long the controller holds a poll */
    int64_t log_limit; /* bytes that the controller accepts of one stream */
};

/* --- POST /v1/agent/join -------------------------------------------------------------------------------- */

/* A node exchanges a join token for a token of its own. It sends only the hash of that token's secret.
 * Repeating the message gives the same answer until the join token expires. */
struct join_message {
    json_t *json;
    const char *token;          /* the join token */
    const char *name;           /* the name that the node is to have */
    uint8_t secret[HASH_BYTES]; /* SHA-256 of the secret's characters (proto/wire/token.h) */
};

struct join_reply {
    json_t *json;
    const char *token_id; /* the token is gct_<token_id>_<secret> */
    const char *pool;     /* the node's pool; NULL: the agent's setting */
    bool reserved;
};

/* --- POST /v1/agent/leave ------------------------------------------------------------------------------- */

/* The agent is about to end. A node without work is gone at once, so that nothing is placed on it any more.
 * Otherwise the message has no effect, unless stop is set. */
struct leave_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id; /* as in register */
    const char *reason;   /* for people */
    bool stop;            /* the work of the node is stopped, each job with its grace, and waits again */
    bool forget;          /* the node's row is removed, too */
};

struct leave_reply {
    json_t *json;
    bool gone; /* false: work is left; ask again */
};
/* 404 not_found means: the controller does not know the node. */

/* --- POST /v1/agent/beat -------------------------------------------------------------------------------- */

/* A GPU of an attempt, as it was when it was last looked at; -1: not known. */
struct gpu_sample {
    int64_t busy_percent; /* of the time */
    int64_t memory_bytes, memory_total_bytes;
    int64_t power_mw;
    int64_t temperature_c;
    int64_t energy_mj; /* since the driver was loaded */
};
#define GPU_SAMPLE_UNKNOWN ((struct gpu_sample){-1, -1, -1, -1, -1, -1})

/* What the processes of one rank use; -1: not known. As in struct sample, but memory that processes share
 * counts once for each. */
struct rank_sample {
    int64_t rank; /* global */
    double cpu_percent;
    int64_t memory_bytes;
    int64_t io_read_bytes, io_written_bytes;
};

/* What an attempt uses on the node at a moment; -1: not known. */
struct sample {
    uint64_t attempt_id;
    int64_t at_ms;                            /* wall clock */
    int64_t step;                             /* seconds since its ranks were started on the node */
    double cpu_percent;                       /* since the sample before, of all CPUs of the node */
    int64_t memory_bytes, memory_total_bytes; /* the latter of the node */
    int64_t io_read_bytes, io_written_bytes;  /* of disks, since its ranks were started */
    struct gpu_sample *gpus;                  /* owned, in the order in which the attempt numbers them */
    size_t gpu_count;
    struct rank_sample *ranks; /* owned; none where the node has one rank of the job */
    size_t rank_count;
};

/* What the whole node uses at the time of the heartbeat; -1: not known. */
struct machine_sample {
    double cpu_percent; /* since the sample before, of all CPUs */
    int64_t memory_bytes, memory_total_bytes;
    struct gpu_sample *gpus; /* owned, in the order of the devices in register; none: CPU slots */
    size_t gpu_count;
};

struct heartbeat_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id; /* as in register, also in poll and report */
    int64_t seq;
    struct device_faults faults;
    struct node_attempt *attempts;
    size_t attempt_count;
    struct sample *samples; /* none from an agent that does not measure */
    size_t sample_count;
    struct machine_sample *machine; /* NULL: the heartbeat carries none */
};
/* 404 not_found means: register again. */

/* messages_sample.c, for messages_agent.c: the member "samples" of a heartbeat, at most LIMIT_SAMPLES, each
 * of at most LIMIT_SAMPLE_GPUS and LIMIT_SAMPLE_RANKS. After a decode, also one that failed, samples_free
 * frees them. */
void samples_put(json_t *json, const struct sample *samples, size_t count);
bool samples_decode(const json_t *json, struct sample **ret_samples, size_t *ret_count, struct err *err);
void samples_free(struct sample *samples, size_t count);
void sample_finish(struct sample *sample);
/* The same for the member "machine"; *ret_machine is NULL where there is none. */
void machine_sample_put(json_t *json, const struct machine_sample *machine);
bool machine_sample_decode(const json_t *json, struct machine_sample **ret_machine, struct err *err);
void machine_sample_free(struct machine_sample *machine);

struct heartbeat_reply {
    json_t *json;
    uint64_t *fenced; /* ids of the listed attempts that the node must stop */
    size_t fenced_count;
};

/* --- POST /v1/agent/poll -------------------------------------------------------------------------------- */

struct poll_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id;
    uint64_t version; /* of the newest reply that was applied; 0 after a start */
};

struct order {
    json_t
        *json; /* after a decode: the order itself, part of the reply's; its strings and spec point into it */
    uint64_t attempt_id;
    enum order_phase phase;
    const char *job_id;
    const char *owner; /* of the job; NULL: from a controller that does not say it */
    int64_t attempt;   /* 1 for the first */
    int64_t node_rank, nodes;
    int64_t first_rank, local_ranks, world;
    const int64_t *devices; /* indices on this node; owned after a decode */
    size_t device_count;
    int64_t millicpus, memory_bytes; /* the node's part of what the job holds; 0: not known */
    const char *master_address;      /* NULL in PREPARE, and without a rendezvous */
    int64_t master_port;             /* 0 in the same cases */
    const char *addresses; /* of START: "ADDRESS:PORT,ADDRESS:PORT" of all nodes by node rank; port 0: the
                              node holds none; NULL: not known, or too many */
    int64_t grace_ms;      /* of STOP: between TERM and KILL */
    int64_t lease_ms;      /* 0 with on_disconnect = keep */
    enum cause cause;      /* of STOP: why */
    /* Of START and RUN: the agent sends it to the ranks as a warning, once. Of STOP: the agent sends it
     * instead of TERM, which follows after the grace. EARLY_NONE: no such signal. */
    enum early_signal signal;
    bool kept; /* of START and RUN: a rank failed. The agent ends the ranks, and keeps all else until STOP */
    bool restore; /* the attempt may begin with a checkpoint: the agent asks for it */
    bool gang;    /* ranks need a rendezvous: node rank 0 holds the master port */
    /* For ranks that track with MLflow: a token that is good for this attempt only, and its run. NULL in
     * STOP, and from a controller that does not track. */
    const char *tracking_token, *tracking_run_id;
    /* For ranks that trace: the span that theirs are children of (proto/trace_context.h). NULL in STOP,
     * and where there is none. */
    const char *traceparent, *tracestate;
    const char *array_id; /* of the job's array; NULL: the job is no task */
    int64_t task, tasks;  /* the task's number, from 0, and the number of tasks */
    /* The values of the spec's secrets, in its order: base64, or null where the job may not have it any more.
     * NULL: the spec names none. Borrowed like the spec. */
    json_t *secrets;
    json_t *spec; /* the job spec (of a task: that of its array); absent in STOP. Borrowed in an encode, part
                     of json after a decode */
};

/* The parts of the job that the node has: one for each device, one without any. */
static inline int64_t order_units(const struct order *order)
{
    return order->device_count > 0 ? (int64_t)order->device_count : 1;
}

/* A stream into a live attempt, which the agent joins with GET /v1/agent/streams/{id}. */
struct stream_order {
    const char *id;
    const char *job_id;
    uint64_t attempt_id;
    json_t *request; /* proto/wire/stream_request.h; borrowed in an encode, part of the reply's json after a
                        decode */
};

struct poll_reply {
    json_t *json;
    uint64_t version;
    bool shutdown; /* the embedded controller ends, and its agents must end, too */
    /* Wall clock: the controller was restored from a backup at restored_ms and asks once for all attempts
     * that the node has run since journal_since_ms. 0: not restored lately. */
    int64_t restored_ms, journal_since_ms;
    uint64_t *live; /* ids of all attempts that the node should hold; the agent fences and kills others */
    size_t live_count;
    struct order *orders; /* the orders that changed after the poll's version */
    size_t order_count;
    struct staging *stagings; /* everything that the node should stage; the agent stops all others. An encode
                                 borrows only their json; owned after a decode */
    size_t staging_count;
    struct stream_order
        *streams; /* the streams that the node should open now; told once. Owned after a decode */
    size_t stream_count;
};

/* --- POST /v1/agent/report ------------------------------------------------------------------------------ */

struct rank_exit {
    int64_t rank;                 /* global rank; the node rank in node mode */
    int64_t code;                 /* exit code; 128+signal when killed by a signal */
    int64_t signal;               /* 0: none */
    int64_t at_ms;                /* wall clock of the node */
    int64_t out_bytes, err_bytes; /* final sizes of its two streams */
    bool by_us;                   /* killed by our own stop sequence, so the rank is not to blame */
};

struct log_tail {
    int64_t rank;
    enum stream stream;
    int64_t offset;
    const char *base64;
};

/* The files that a rank left: in $GPUCTL_RESULT_DIR, or its error file. */
struct rank_result {
    int64_t rank;
    enum result_kind kind;
    int64_t size;       /* of the pickle */
    const char *hash;   /* SHA-256 of the pickle in hex; NULL: only an error file exists */
    const char *base64; /* a small pickle itself; NULL: it was uploaded as a blob before */
    const char *json;   /* VALUE: the value as JSON text, if it has one; EXCEPTION: the error file, which is
                                 JSON of at most LIMIT_ERROR_FILE_BYTES; else NULL */
    /* Set by the receiver before the message goes to the core; never sent. */
    const uint8_t *digest; /* hash, decoded; NULL if hash is */
    const void *bytes;     /* base64, decoded and checked against the hash; NULL if base64 is */
};

/* How the GPUs of a node were used by an attempt, over all of them, as far as they were measured, and its
 * disks. */
struct gpu_use {
    int64_t measured_ms; /* GPU time with a known utilization */
    int64_t idle_ms;     /* of that, with a utilization below GPU_IDLE_PERCENT */
    int64_t energy_mj;   /* 0: not known */
    /* Of an attempt that had samples: as in these, at its end; 0: nothing, or not known. */
    int64_t io_read_bytes, io_written_bytes;
};

struct report_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *agent_id;
    uint64_t attempt_id;
    enum report_kind kind;
    const char *address; /* of PREPARED from node rank 0 */
    int64_t master_port; /* of PREPARED from node rank 0, and of RUNNING and EXITED of a gang on one node */
    int64_t at_ms;       /* RUNNING: wall clock when the last rank was started */
    enum cause cause;    /* DECLINED, FAILED, EXITED: the cause; CAUSE_NONE: no failure */
    const char *text;    /* the cause for people; NULL: nothing to add */
    struct rank_exit *ranks; /* FAILED: the first that failed; EXITED: all that were started */
    size_t rank_count;
    struct log_tail *tails; /* EXITED: the last log bytes, LIMIT_EXIT_TAIL_BYTES in all */
    size_t tail_count;
    int64_t checkpoint_ms; /* EXITED: wall clock of the last checkpoint that a rank acknowledged; 0: none */
    bool flushed;          /* EXITED: with these tails, all bytes of the streams have been sent */
    const char *said; /* FAILED, EXITED: one line: the message in the first failed rank's error file; if no
                         rank failed, a remark of the node; or NULL */
    struct rank_result *results; /* EXITED; ordered by rank */
    size_t result_count;
    const char *start; /* RUNNING, EXITED: how the ranks were started, for people: "warm", "cold" and why;
                          at most LIMIT_START_TEXT bytes; NULL: not said */
    struct node_timing timing;   /* PREPARED, RUNNING, EXITED: the durations known so far */
    struct device_faults faults; /* DECLINED, EXITED: told if there are any */
    struct gpu_use use;          /* EXITED */
    /* Set by the receiver before the message goes to the core, CLOCK_BOOTTIME; never sent. When the
     * controller last sent PREPARE, and RUN or START, of this attempt to the node; 0: not since the
     * controller started. */
    int64_t prepare_sent_us, start_sent_us;
};

/* --- POST /v1/agent/staging ----------------------------------------------------------------------------- */

struct staging_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    const char *key;
    enum staging_state state;
    bool by_user;     /* FAILED: any node would fail, because the requested packages or files do not exist */
    bool lasting;     /* FAILED: this node keeps failing until its agent restarts */
    const char *text; /* BUILDING: the current action, one line; FAILED: the reason, possibly several lines;
                                              or NULL */
};
/* The reply is {}; 404 not_found means: register again. BUILDING need not be repeated. */

/* --- POST /v1/agent/journal ----------------------------------------------------------------------------- */

/* An attempt that the node has run. */
struct journal_entry {
    uint64_t attempt_id;
    const char *job_id;
    int64_t began_ms, ended_ms; /* wall clock of the node; ended_ms 0: end not known */
    int64_t code;               /* the largest exit code of its ranks here; -1: not known */
};

/* At most LIMIT_JOURNAL_ENTRIES entries; further messages carry the rest. */
struct journal_message {
    json_t *json;
    const char *node;
    const char *boot_id;
    struct journal_entry *entries;
    size_t entry_count;
};
/* The reply is {"unknown": the number of entries that are in no database}; 404 not_found means: register
 * again. */

struct log_reply {
    json_t *json;
    int64_t received; /* the controller has received the stream up to here */
    int64_t durable;  /* the stream is on disk up to here: the agent may delete the bytes below */
};

#define MESSAGE_DECLARE(name)                                                                                \
    json_t *name##_encode(const struct name *message);                                                       \
    /* Takes over json in any case; ERR_FIELD names the member. */                                           \
    bool name##_decode(json_t *json, struct name *ret_message, struct err *err);                             \
    void name##_finish(struct name *message);
MESSAGE_DECLARE(register_message) /* first refuses messages of an incompatible protocol */
MESSAGE_DECLARE(register_reply)
MESSAGE_DECLARE(join_message)
MESSAGE_DECLARE(join_reply)
MESSAGE_DECLARE(leave_message)
MESSAGE_DECLARE(leave_reply)
MESSAGE_DECLARE(heartbeat_message)
MESSAGE_DECLARE(heartbeat_reply)
MESSAGE_DECLARE(poll_message)
MESSAGE_DECLARE(poll_reply)
MESSAGE_DECLARE(report_message)
MESSAGE_DECLARE(staging_message)
MESSAGE_DECLARE(journal_message)
MESSAGE_DECLARE(log_reply)

#endif
