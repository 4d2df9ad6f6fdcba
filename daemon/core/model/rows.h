/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the state, one list of columns each: the structs of rows, and all that the store does with
 * rows, come from these lists. Strings of a row are borrowed. Times named _ms are wall clock, for display. */
#ifndef CORE_MODEL_ROWS_H
#define CORE_MODEL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/base/text/text.h"
#include "proto/states.h"

/* X(S, type, name, role). S is the struct, for those who ask.
 *
 * Types: NUMBER, KEY64 (a number without a sign), REAL, FLAG, WORD(list of proto/states.h), TEXT (or NULL),
 * NAME (NULL is the empty string there), LONG_TEXT (name_length bytes), DIGEST (32 bytes), HASH (the
 * same, or NULL), BYTES (as many as the column before says, or NULL), MOMENTS(struct of 64-bit numbers),
 * TASK (NUMBER; NULL is -1).
 *
 * Roles: KEY identifies a row, LIFE changes, ONCE does not. TASK is NULL but in tasks of arrays; these have
 * the SHARED columns of their arrays. */

/* What of a job never changes after its submission. The array is first: the store refers to it by place. */
#define JOB_BIRTH_ROW(X, S)                                                                                  \
    X(S, NUMBER, array_key, TASK) /* of a task: its array, whose SHARED columns are its own; 0: none */      \
    X(S, TASK, task, TASK)        /* its number; -1: none */                                                 \
    X(S, TEXT, id, ONCE)                                                                                     \
    X(S, TEXT, owner, SHARED)                                                                                \
    X(S, TEXT, name, SHARED)    /* or NULL */                                                                \
    X(S, TEXT, program, SHARED) /* program_of its command; or NULL */                                        \
    X(S, TEXT, labels, SHARED)  /* JSON object of strings, or NULL */                                        \
    X(S, TEXT, retry_of, ONCE)  /* id of the job that it repeats, or NULL */                                 \
    X(S, TEXT, project, SHARED)                                                                              \
    X(S, NUMBER, gpus, SHARED)                                                                               \
    X(S, TEXT, gpu_type, SHARED) /* or NULL */                                                               \
    X(S, NUMBER, created_ms, ONCE)

/* What does. */
#define JOB_LIFE_ROW(X, S)                                                                                   \
    X(S, NUMBER, key, KEY) /* internal, increasing */                                                        \
    X(S, WORD(job_state), state, LIFE)                                                                       \
    X(S, NUMBER, seq, LIFE)     /* of its last event */                                                      \
    X(S, NUMBER, attempt, LIFE) /* number of the newest; 0: none yet */                                      \
    X(S, NUMBER, user_failures, LIFE)                                                                        \
    X(S, NUMBER, infra_failures, LIFE)                                                                       \
    X(S, TEXT, pool, LIFE) /* of the newest attempt, or NULL */                                              \
    X(S, NUMBER, priority, LIFE)                                                                             \
    X(S, NUMBER, time_limit_ms, LIFE) /* 0: none */                                                          \
    X(S, NUMBER, ran_ms, LIFE)        /* with all GPUs, over all attempts that have ended */                 \
    X(S, NUMBER, started_ms, LIFE)                                                                           \
    X(S, NUMBER, ended_ms, LIFE)                                                                             \
    X(S, NUMBER, exit_code, LIFE)     /* -1 while not terminal */                                            \
    X(S, NUMBER, failed_rank, LIFE)   /* -1: none */                                                         \
    X(S, TEXT, failed_node, LIFE)     /* or NULL */                                                          \
    X(S, NUMBER, idle_since_ms, LIFE) /* its GPUs are idle, and its owner was told; 0: no */                 \
    X(S, NUMBER, kept_until_ms, LIFE) /* of an attempt that is KEPT; 0: it is not */                         \
    X(S, WORD(cause), cause, LIFE)                                                                           \
    X(S, TEXT, reason, LIFE) /* or NULL */

#define SPEC_ROW(X, S)                                                                                       \
    X(S, NUMBER, job_key, KEY)                                                                               \
    X(S, TEXT, shown, ONCE)     /* the same as people are shown it; NULL: as it was received */              \
    X(S, LONG_TEXT, spec, ONCE) /* JSON, as it was received */

/* How far an array is: a job that stands for many tasks. */
#define ARRAY_ROW(X, S)                                                                                      \
    X(S, NUMBER, whole, KEY)     /* key of the job */                                                        \
    X(S, NUMBER, tasks, ONCE)    /* 0: the job is no array */                                                \
    X(S, NUMBER, parallel, ONCE) /* of them, at most so many at a time; 0: any number */                     \
    X(S, NUMBER, placed, LIFE)   /* tasks that have become jobs: those with a smaller number */              \
    X(S, NUMBER, running, LIFE)  /* of these, have not ended */                                              \
    X(S, NUMBER, succeeded, LIFE)                                                                            \
    X(S, NUMBER, failed, LIFE)     /* failed, timed out, or given up before they were placed */              \
    X(S, NUMBER, canceled, LIFE)   /* of these, too, some may never have been placed */                      \
    X(S, NUMBER, worst_code, LIFE) /* the largest exit code of a task */

#define EVENT_ROW(X, S)                                                                                      \
    X(S, NUMBER, job_key, KEY)                                                                               \
    X(S, NUMBER, seq, KEY)                                                                                   \
    X(S, NUMBER, at_ms, ONCE)                                                                                \
    X(S, WORD(event_kind), kind, ONCE)                                                                       \
    X(S, NUMBER, attempt, ONCE)                                                                              \
    X(S, TEXT, detail, ONCE) /* JSON object, or NULL */

/* A job that depends on another. */
#define DEPENDENCY_ROW(X, S)                                                                                 \
    X(S, NUMBER, job_key, KEY)                                                                               \
    X(S, NUMBER, on_key, KEY) /* the other */                                                                \
    X(S, WORD(dependency), kind, ONCE)

/* When things were done with an attempt, by the controller's steady clock: the wall clock as it was when the
 * controller was started, and the time since. In microseconds, all but the first since that; 0: not known.
 * The store writes these fields in this order. */
struct attempt_timing {
    int64_t received_us; /* the submission was there */
    int64_t queued_us;   /* it was on disk */
    int64_t placed_us;   /* the job got its GPUs */
    int64_t started_us;  /* the start was on disk */
    int64_t settled_us;  /* nothing of it was left to come: that is the end, once it is on disk */
};

/* The same of one node. By the controller's clock, since the submission was received; then by the node's,
 * since the order came that it is of: START, where that left. 0: not known. */
struct member_timing {
    int64_t queued_us, started_us; /* of its attempt, as far as the row is newer than that one's */
    int64_t ordered_us;            /* PREPARE left, or RUN */
    int64_t told_us;               /* START left */
    int64_t ready_us;              /* it had said that it is prepared */
    int64_t heard_us;              /* it had said that its ranks were started */
    int64_t prepared_us, begun_us, running_us, output_us, ended_us; /* as in proto/wire/timing.h */
};

/* How the GPUs of a node were used by an attempt, over all of them. */
struct member_use {
    int64_t measured_ms; /* GPU time with a known utilization */
    int64_t idle_ms;     /* of that, below GPU_IDLE_PERCENT */
    int64_t energy_mj;   /* 0: not known */
};

#define ATTEMPT_ROW(X, S)                                                                                    \
    X(S, KEY64, attempt_id, KEY)                                                                             \
    X(S, NUMBER, job_key, ONCE)                                                                              \
    X(S, NUMBER, number, ONCE)                                                                               \
    X(S, TEXT, pool, ONCE)                                                                                   \
    X(S, TEXT, gpu_type, ONCE) /* NULL: of an attempt that was made before this was kept */                  \
    X(S, NUMBER, created_ms, ONCE)                                                                           \
    X(S, WORD(attempt_state), state, LIFE)                                                                   \
    X(S, WORD(cause), cause, LIFE)                                                                           \
    X(S, TEXT, cause_text, LIFE)     /* for people, or NULL */                                               \
    X(S, TEXT, master_address, LIFE) /* or NULL */                                                           \
    X(S, NUMBER, master_port, LIFE)  /* 0: none */                                                           \
    X(S, NUMBER, started_ms, LIFE)                                                                           \
    X(S, NUMBER, ended_ms, LIFE)                                                                             \
    X(S, NUMBER, failed_rank, LIFE) /* -1: none */                                                           \
    X(S, NUMBER, failed_code, LIFE)                                                                          \
    X(S, WORD(claim), claim, LIFE)                                                                           \
    X(S, NUMBER, warned_ms, LIFE)     /* when its early signal was ordered; 0: it was not */                 \
    X(S, NUMBER, checkpoint_ms, LIFE) /* of the last acknowledged one, once its node has exited; 0 */        \
    X(S, MOMENTS(attempt_timing), timing, LIFE)

/* What the core holds of a member as it is in its row. */
#define MEMBER_OWN_ROW(X, S)                                                                                 \
    X(S, NUMBER, node_rank, KEY)                                                                             \
    X(S, NUMBER, first_rank, ONCE)                                                                           \
    X(S, NUMBER, local_ranks, ONCE)                                                                          \
    X(S, NUMBER, millicpus, ONCE)    /* that it holds, in thousandths; 0: not known */                       \
    X(S, NUMBER, memory_bytes, ONCE) /* likewise */                                                          \
    X(S, FLAG, isolated, ONCE)       /* its ranks run as the user of the job's owner */                      \
    X(S, WORD(member_state), state, LIFE)                                                                    \
    X(S, MOMENTS(member_timing), timing, LIFE)                                                               \
    X(S, TEXT, start, LIFE) /* how it started its ranks, for people; or NULL */                              \
    X(S, TEXT, marks, LIFE) /* JSON array of {name, rank, after_us}; or NULL */                              \
    X(S, MOMENTS(member_use), use, LIFE)
#define MEMBER_ROW(X, S)                                                                                     \
    X(S, KEY64, attempt_id, KEY)                                                                             \
    X(S, TEXT, node, ONCE)    /* name */                                                                     \
    X(S, TEXT, devices, ONCE) /* "0,1,5" */                                                                  \
    MEMBER_OWN_ROW(X, S)

#define RANK_ROW(X, S)                                                                                       \
    X(S, KEY64, attempt_id, KEY)                                                                             \
    X(S, NUMBER, rank, KEY)                                                                                  \
    X(S, NUMBER, code, LIFE)                                                                                 \
    X(S, NUMBER, signal, LIFE)                                                                               \
    X(S, NUMBER, at_ms, LIFE)                                                                                \
    X(S, NUMBER, out_bytes, LIFE)                                                                            \
    X(S, NUMBER, err_bytes, LIFE)

/* What a rank left behind. */
#define RESULT_ROW(X, S)                                                                                     \
    X(S, KEY64, attempt_id, KEY)                                                                             \
    X(S, NUMBER, rank, KEY)                                                                                  \
    X(S, WORD(result_kind), kind, LIFE)                                                                      \
    X(S, NUMBER, size, LIFE)                                                                                 \
    X(S, HASH, hash, LIFE) /* of the pickle, a blob; NULL: there is none */                                  \
    X(S, TEXT, json, LIFE) /* or NULL */

/* What the core holds of a node as it is in its row. */
#define NODE_OWN_ROW(X, S)                                                                                   \
    X(S, TEXT, boot_id, LIFE)                                                                                \
    X(S, NAME, agent_id, LIFE) /* of its agent's state folder; NULL or "": it does not say */                \
    X(S, TEXT, host_id, LIFE)                                                                                \
    X(S, TEXT, version, LIFE)                                                                                \
    X(S, TEXT, address, LIFE)                                                                                \
    X(S, TEXT, pool, LIFE)                                                                                   \
    X(S, WORD(pool_kind), pool_kind, LIFE)                                                                   \
    X(S, WORD(node_state), state, LIFE) /* never SUSPECT, which follows from heartbeats */                   \
    X(S, TEXT, reason, LIFE)            /* or NULL */                                                        \
    X(S, WORD(isolation), isolation, LIFE)                                                                   \
    X(S, FLAG, slots, LIFE)                                                                                  \
    X(S, NUMBER, millicpus, LIFE)    /* that jobs may have, in thousandths; 0: its agent does not say */     \
    X(S, NUMBER, memory_bytes, LIFE) /* likewise */                                                          \
    X(S, NUMBER, registered_ms, LIFE)                                                                        \
    X(S, NUMBER, heard_ms, LIFE)            /* its last heartbeat, to NODE_HEARD_MS */                       \
    X(S, NUMBER, expires_at_ms, LIFE)       /* when its provider takes it back; 0: never */                  \
    X(S, NUMBER, agent_expires_at_ms, LIFE) /* what its agent said of that last */
#define NODE_ROW(X, S)                                                                                       \
    X(S, TEXT, name, KEY)                                                                                    \
    X(S, TEXT, devices, LIFE) /* JSON array of {index, uuid, type, memory_bytes, group} */                   \
    X(S, TEXT, labels, LIFE)  /* JSON object of strings, or NULL */                                          \
    NODE_OWN_ROW(X, S)

/* A time in which nodes get no work. */
#define WINDOW_ROW(X, S)                                                                                     \
    X(S, TEXT, id, KEY)                                                                                      \
    X(S, TEXT, nodes, ONCE) /* names, separated by commas; NULL: not by name */                              \
    X(S, TEXT, pool, ONCE)  /* NULL with nodes NULL: all nodes */                                            \
    X(S, NUMBER, from_ms, ONCE)                                                                              \
    X(S, NUMBER, until_ms, ONCE)                                                                             \
    X(S, FLAG, hard, ONCE)   /* what runs then is stopped before it begins; else it may end */               \
    X(S, TEXT, reason, ONCE) /* or NULL */                                                                   \
    X(S, TEXT, owner, ONCE)  /* who made it */                                                               \
    X(S, NUMBER, created_ms, ONCE)

/* How long jobs of one kind have run: the sums from which estimates are learned. */
#define HISTORY_ROW(X, S)                                                                                    \
    X(S, TEXT, project, KEY)                                                                                 \
    X(S, TEXT, owner, KEY)                                                                                   \
    X(S, TEXT, name, KEY) /* without the digits at its end; "": none */                                      \
    X(S, NUMBER, gpus, KEY)                                                                                  \
    X(S, FLAG, limited, KEY)          /* jobs with a time limit count apart */                               \
    X(S, NUMBER, count, LIFE)         /* of runs that ended by themselves */                                 \
    X(S, NUMBER, ran_ms, LIFE)        /* sum */                                                              \
    X(S, NUMBER, limit_ms, LIFE)      /* sum of their limits; 0 without */                                   \
    X(S, NUMBER, error_percent, LIFE) /* sum of how far each estimate was off: 100 means by a factor of two  \
                                       */

/* What a project (project alone), a user (owner alone), or a user within a project (both) has used. */
#define USAGE_ROW(X, S)                                                                                      \
    X(S, NAME, project, KEY)   /* or NULL */                                                                 \
    X(S, NAME, owner, KEY)     /* or NULL */                                                                 \
    X(S, REAL, gpu_ms, LIFE)   /* decayed up to at_ms, for fair shares */                                    \
    X(S, REAL, spent_ms, LIFE) /* GPU time since the period of its limit began in which at_ms lies */        \
    X(S, NUMBER, at_ms, LIFE)

/* What jobs held in an hour, and what is known of how they used it: the parts of attempts that have ended. */
#define HOUR_ROW(X, S)                                                                                       \
    X(S, NUMBER, hour_ms, KEY) /* its beginning; a multiple of HOUR_MS */                                    \
    X(S, TEXT, project, KEY)                                                                                 \
    X(S, TEXT, owner, KEY)                                                                                   \
    X(S, TEXT, pool, KEY)                                                                                    \
    X(S, TEXT, gpu_type, KEY)                                                                                \
    X(S, FLAG, reserved, KEY)       /* the pool is a reserved one */                                         \
    X(S, NUMBER, attempts, LIFE)    /* that ended in it */                                                   \
    X(S, NUMBER, gpu_ms, LIFE)      /* sum over their GPUs */                                                \
    X(S, NUMBER, measured_ms, LIFE) /* of that, with a known utilization */                                  \
    X(S, NUMBER, idle_ms, LIFE)     /* of that, nearly unused */                                             \
    X(S, NUMBER, energy_mj, LIFE)

#define LIMITS_ROW(X, S)                                                                                     \
    X(S, WORD(account_kind), kind, KEY)                                                                      \
    X(S, TEXT, name, KEY)                                                                                    \
    X(S, TEXT, limits, LIFE) /* JSON, see proto/spec/account_limits.h */

/* The first answer to a request that carried an Idempotency-Key. */
#define REPLY_ROW(X, S)                                                                                      \
    X(S, NUMBER, key, KEY)      /* the store's */                                                            \
    X(S, DIGEST, scope, ONCE)   /* SHA-256 of owner, route and key */                                        \
    X(S, DIGEST, body, ONCE)    /* SHA-256 of the raw request body */                                        \
    X(S, NUMBER, job_key, ONCE) /* that lives as long as this row; 0: none */                                \
    X(S, NUMBER, status, ONCE)                                                                               \
    X(S, NUMBER, at_ms, ONCE)                                                                                \
    X(S, LONG_TEXT, answer, ONCE)

#define TOKEN_ROW(X, S)                                                                                      \
    X(S, TEXT, id, KEY)                                                                                      \
    X(S, DIGEST, secret, ONCE) /* SHA-256 */                                                                 \
    X(S, WORD(role), role, ONCE)                                                                             \
    X(S, TEXT, owner, ONCE)                                                                                  \
    X(S, NUMBER, created_ms, ONCE)                                                                           \
    X(S, NUMBER, expires_ms, ONCE) /* 0: never */                                                            \
    X(S, FLAG, revoked, LIFE)                                                                                \
    X(S, TEXT, node, ONCE)      /* that the token is bound to; NULL: none */                                 \
    X(S, NUMBER, used_ms, LIFE) /* when it was last used, to TOKEN_USE_MS; 0: never */                       \
    X(S, TEXT, project, ONCE)   /* of a service account: all that it reaches; NULL: of all others */         \
    X(S, TEXT, subject, ONCE)   /* who logged in, as the identity provider names them; NULL: nobody did */   \
    X(S, TEXT, groups, ONCE)    /* of them there, as groups.h has them; NULL: none */

/* What a node trades for a token of its own, once. */
#define JOIN_ROW(X, S)                                                                                       \
    X(S, TEXT, id, KEY)                                                                                      \
    X(S, DIGEST, secret, ONCE) /* SHA-256 */                                                                 \
    X(S, TEXT, pool, ONCE)     /* of the node to be; NULL: as its agent says */                              \
    X(S, FLAG, reserved, ONCE)                                                                               \
    X(S, TEXT, owner, ONCE) /* who made it */                                                                \
    X(S, NUMBER, created_ms, ONCE)                                                                           \
    X(S, NUMBER, expires_ms, ONCE)                                                                           \
    X(S, TEXT, node, LIFE)  /* that used it; NULL: not used yet */                                           \
    X(S, TEXT, token, LIFE) /* what it was traded for: id of that token; NULL: likewise */

#define BLOB_ROW(X, S)                                                                                       \
    X(S, DIGEST, hash, KEY)                                                                                  \
    X(S, NUMBER, size, ONCE)                                                                                 \
    X(S, BYTES, bytes, ONCE) /* NULL: the bytes are a file */                                                \
    X(S, NUMBER, created_ms, ONCE)

/* A blob that a job's spec names, or that its requirements were stored as. */
#define USE_ROW(X, S)                                                                                        \
    X(S, NUMBER, job_key, KEY)                                                                               \
    X(S, TEXT, hash, KEY) /* in hex */

/* A blob that somebody has sent, until a job of theirs names it. */
#define UPLOAD_ROW(X, S)                                                                                     \
    X(S, TEXT, owner, KEY)                                                                                   \
    X(S, TEXT, hash, KEY) /* in hex */                                                                       \
    X(S, NUMBER, size, LIFE)                                                                                 \
    X(S, NUMBER, at_ms, LIFE)

/* A job that was removed, while rows of its history are left. */
#define REMOVAL_ROW(X, S)                                                                                    \
    X(S, NUMBER, job_key, KEY)                                                                               \
    X(S, TEXT, id, ONCE) /* of the job */

/* An attempt that a node tells of, and that a database which was put back from a backup does not know. */
#define LOST_ROW(X, S)                                                                                       \
    X(S, KEY64, attempt_id, KEY)                                                                             \
    X(S, TEXT, node, KEY)                                                                                    \
    X(S, TEXT, job_id, ONCE)                                                                                 \
    X(S, FLAG, known, ONCE)      /* the job is there, only the attempt is not */                             \
    X(S, NUMBER, began_ms, ONCE) /* wall clock of the node; 0: it does not tell */                           \
    X(S, NUMBER, ended_ms, LIFE) /* likewise */                                                              \
    X(S, NUMBER, code, LIFE)     /* the largest exit code of its ranks there; -1: none is known */

/* Who is told of events of jobs. */
#define WEBHOOK_ROW(X, S)                                                                                    \
    X(S, TEXT, id, KEY)                                                                                      \
    X(S, TEXT, owner, ONCE)                                                                                  \
    X(S, TEXT, name, ONCE) /* unique among the owner's; or NULL */                                           \
    X(S, WORD(webhook_scope), scope, ONCE)                                                                   \
    X(S, TEXT, project, ONCE) /* of jobs of this one alone; NULL: of any */                                  \
    X(S, TEXT, secret, ONCE)  /* "whsec_" and 24 bytes in base64: it signs, so it is stored as it is */      \
    X(S, NUMBER, created_ms, ONCE)                                                                           \
    X(S, TEXT, url, LIFE)                                                                                    \
    X(S, TEXT, kinds, LIFE) /* of events: "succeeded,failed" */                                              \
    X(S, FLAG, tasks, LIFE) /* also of tasks of arrays */                                                    \
    X(S, FLAG, enabled, LIFE)                                                                                \
    X(S, TEXT, reason, LIFE)       /* why it is not; or NULL */                                              \
    X(S, NUMBER, failing_ms, LIFE) /* since when no try has succeeded; 0: the last one has */

/* A secret of a person or of a project: one of owner and project is "". */
#define SECRET_ROW(X, S)                                                                                     \
    X(S, TEXT, owner, KEY)                                                                                   \
    X(S, TEXT, project, KEY)                                                                                 \
    X(S, TEXT, name, KEY)                                                                                    \
    X(S, TEXT, set_by, LIFE) /* who has set it last */                                                       \
    X(S, NUMBER, set_ms, LIFE)                                                                               \
    X(S, NUMBER, sealed_size, LIFE)                                                                          \
    X(S, BYTES, sealed, LIFE) /* the value, as daemon/vault/vault.h seals it */

/* An event that a webhook is told of. Rows are made in the transaction of their event. */
#define DELIVERY_ROW(X, S)                                                                                   \
    X(S, NUMBER, key, KEY) /* incarnation << 32 | n: in order of the events, and never used twice */         \
    X(S, TEXT, webhook, ONCE)                                                                                \
    X(S, NUMBER, job_key, ONCE) /* 0: a test, of no job */                                                   \
    X(S, NUMBER, seq, ONCE)     /* of the event */                                                           \
    X(S, NUMBER, created_ms, ONCE)                                                                           \
    X(S, WORD(delivery_state), state, LIFE)                                                                  \
    X(S, NUMBER, tries, LIFE)                                                                                \
    X(S, NUMBER, next_ms, LIFE) /* the next try is not before this */                                        \
    X(S, NUMBER, at_ms, LIFE)   /* of the last try; 0: none yet */                                           \
    X(S, NUMBER, code, LIFE)    /* HTTP status of its answer; 0: there was none */                           \
    X(S, TEXT, error, LIFE)     /* or NULL */

/* Jobs that are submitted by the clock. A run writes the columns with the role ONCE behind created_ms. */
#define SCHEDULE_ROW(X, S)                                                                                   \
    X(S, TEXT, id, KEY)                                                                                      \
    X(S, TEXT, owner, ONCE)                                                                                  \
    X(S, TEXT, name, ONCE) /* unique among the owner's */                                                    \
    X(S, TEXT, project, ONCE)                                                                                \
    X(S, TEXT, spec, ONCE)  /* of its jobs, with their label */                                              \
    X(S, TEXT, shown, ONCE) /* the same as people see it; NULL: it hides nothing */                          \
    X(S, NUMBER, created_ms, ONCE)                                                                           \
    X(S, NUMBER, due_ms, ONCE)                  /* of the last run; 0: none yet */                           \
    X(S, NUMBER, ran_ms, ONCE)                  /* when that was submitted, or not; 0: likewise */           \
    X(S, WORD(schedule_outcome), outcome, ONCE) /* of the last run */                                        \
    X(S, TEXT, job, ONCE)                       /* id of the last that was made; NULL: none yet */           \
    X(S, TEXT, error, ONCE)                     /* why the last run made none; or NULL */                    \
    X(S, TEXT, cron, LIFE)                                                                                   \
    X(S, TEXT, time_zone, LIFE)                                                                              \
    X(S, WORD(schedule_missed), missed, LIFE)                                                                \
    X(S, WORD(schedule_overlap), overlap, LIFE)                                                              \
    X(S, FLAG, paused, LIFE)                                                                                 \
    X(S, TEXT, reason, LIFE)    /* why it has paused itself; or NULL */                                      \
    X(S, NUMBER, next_ms, LIFE) /* when the next run is due */

/* A blob that the spec of a schedule names. */
#define SCHEDULE_USE_ROW(X, S)                                                                               \
    X(S, TEXT, schedule, KEY)                                                                                \
    X(S, TEXT, hash, KEY) /* in hex */

/* What somebody did, or was not allowed to do. */
#define AUDIT_ROW(X, S)                                                                                      \
    X(S, NUMBER, seq, KEY) /* 1, 2, 3 ...: none is left out */                                               \
    X(S, NUMBER, at_ms, ONCE)                                                                                \
    X(S, TEXT, owner, ONCE)      /* of the token; NULL: there was none, or it was not known */               \
    X(S, WORD(role), role, ONCE) /* of the token */                                                          \
    X(S, TEXT, token, ONCE)      /* its id; NULL: see owner */                                               \
    X(S, TEXT, address, ONCE)    /* from which the request came */                                           \
    X(S, TEXT, method, ONCE)                                                                                 \
    X(S, TEXT, path, ONCE)                                                                                   \
    X(S, TEXT, subject, ONCE)  /* the id of what was made; or NULL */                                        \
    X(S, NUMBER, status, ONCE) /* of the answer */                                                           \
    X(S, TEXT, code, ONCE)     /* of the error; NULL: there was none */                                      \
    X(S, TEXT, detail, ONCE)   /* JSON object, or NULL */                                                    \
    X(S, DIGEST, hash, ONCE)   /* of the row, and of the hash of the one before: audit_hash */

/* --- their structs -------------------------------------------------------------------------------------- */

#define ROW_NAME(name)         name;
#define ROW_FIELD_NUMBER(name) int64_t name;
#define ROW_FIELD_TASK(name)   int64_t name;
#define ROW_FIELD_KEY64(name)  uint64_t name;
#define ROW_FIELD_REAL(name)   double name;
#define ROW_FIELD_FLAG(name)   bool name;
#define ROW_FIELD_WORD(type)   enum type ROW_NAME
#define ROW_FIELD_TEXT(name)   const char *name;
#define ROW_FIELD_NAME(name)   const char *name;
#define ROW_FIELD_LONG_TEXT(name)                                                                            \
    const char *name;                                                                                        \
    size_t name##_length;
#define ROW_FIELD_DIGEST(name)         uint8_t name[32];
#define ROW_FIELD_HASH(name)           const uint8_t *name;
#define ROW_FIELD_BYTES(name)          const void *name;
#define ROW_FIELD_MOMENTS(type)        struct type ROW_NAME
#define ROW_FIELD(S, type, name, role) ROW_FIELD_##type(name)

struct job_birth {
    int64_t key; /* as in its life */
    JOB_BIRTH_ROW(ROW_FIELD, )
    const char *shown; /* the spec: see SPEC_ROW */
    const char *spec;
    size_t spec_length;
    const char *array_id; /* set by readers; NULL: none */
};

struct job_life {
    JOB_LIFE_ROW(ROW_FIELD, )
    /* set when live jobs are loaded, and nowhere else */
    int64_t event_ms;      /* when its last event was */
    int64_t kept_since_ms; /* when its attempt was kept; 0: it is not */
};

struct job_row {
    struct job_birth birth;
    struct job_life life;
};

/* All other tables. X(table, row, list of columns) */
#define ROW_TABLES(X)                                                                                        \
    X(specs, spec, SPEC_ROW)                                                                                 \
    X(arrays, array, ARRAY_ROW)                                                                              \
    X(events, event, EVENT_ROW)                                                                              \
    X(dependencies, dependency, DEPENDENCY_ROW)                                                              \
    X(attempts, attempt, ATTEMPT_ROW)                                                                        \
    X(members, member, MEMBER_ROW)                                                                           \
    X(ranks, rank, RANK_ROW)                                                                                 \
    X(results, result, RESULT_ROW)                                                                           \
    X(nodes, node, NODE_ROW)                                                                                 \
    X(windows, window, WINDOW_ROW)                                                                           \
    X(history, history, HISTORY_ROW)                                                                         \
    X(usage, usage, USAGE_ROW)                                                                               \
    X(hours, hour, HOUR_ROW)                                                                                 \
    X(limits, limits, LIMITS_ROW)                                                                            \
    X(replies, reply, REPLY_ROW)                                                                             \
    X(tokens, token, TOKEN_ROW)                                                                              \
    X(joins, join, JOIN_ROW)                                                                                 \
    X(blobs, blob, BLOB_ROW)                                                                                 \
    X(uses, use, USE_ROW)                                                                                    \
    X(uploads, upload, UPLOAD_ROW)                                                                           \
    X(removals, removal, REMOVAL_ROW)                                                                        \
    X(lost, lost, LOST_ROW)                                                                                  \
    X(webhooks, webhook, WEBHOOK_ROW)                                                                        \
    X(deliveries, delivery, DELIVERY_ROW)                                                                    \
    X(schedules, schedule, SCHEDULE_ROW)                                                                     \
    X(schedule_uses, schedule_use, SCHEDULE_USE_ROW)                                                         \
    X(secrets, secret, SECRET_ROW)                                                                           \
    X(audit, audit, AUDIT_ROW)

#define ROW_STRUCT(table, row, COLUMNS)                                                                      \
    struct row##_row {                                                                                       \
        COLUMNS(ROW_FIELD, )                                                                                 \
    };
ROW_TABLES(ROW_STRUCT)
#undef ROW_STRUCT

/* --- their texts ---------------------------------------------------------------------------------------- */

/* Where a text of the row is; NULL: the column is none. */
#define ROW_TEXT(row, name) _Generic((row).name, const char * : &(row).name, default : NULL)

/* For a list of columns, with the row as S: an initializer of another takes them from it; it gets copies of
 * its texts, which it owns; it frees them. */
#define ROW_TAKE(row, type, name, role) .name = (row).name,
#define ROW_OWN(row, type, name, role)  row_own(ROW_TEXT(row, name));
#define ROW_FREE(row, type, name, role) row_free(ROW_TEXT(row, name));

static inline void row_own(const char **text)
{
    if (text != NULL && *text != NULL) {
        *text = xstrdup(*text);
    }
}

static inline void row_free(const char **text)
{
    if (text != NULL) {
        free((void *)(uintptr_t)*text);
        *text = NULL;
    }
}

#endif
