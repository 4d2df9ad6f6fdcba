/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the controller alone. */
#ifndef PROTO_LIMITS_CONTROLLER_H
#define PROTO_LIMITS_CONTROLLER_H

#include "proto/limits.h"

/* --- controller --- */
/* the checkpoint of a node of a job: the state of a model with 4 billion parameters; its manifest has room
 * for the largest */
#define DEFAULT_CHECKPOINT_GIB 64
#define LIMIT_CHECKPOINT_GIB   200
/* a piece of a checkpoint that no manifest names stays this long: a node may be about to name it */
#define CHECKPOINT_PIECE_STAY_S 3600
/* the sentence that says why a checkpoint was refused */
#define LIMIT_CHECKPOINT_PROBLEM 512
/* a staging step without progress for this long is reported as stuck, with its place */
#define STAGING_SILENT_MS 60000
/* a node that failed to stage an environment is not asked for it again for this long, doubling ... */
#define STAGING_HOLD_MS 30000
/* ... up to this */
#define STAGING_HOLD_MAX_MS 900000
/* environment specs of ended jobs that are remembered, with the nodes that have them ready: 300 bytes each
 * and 60 per node */
#define LIMIT_STAGINGS_KEPT 256
/* images, packages and inputs that are remembered with the nodes that have them, though no remembered
 * environment spec names them: those of some teams in a week; 200 bytes each and 100 per node */
#define LIMIT_PARTS_KEPT 256
/* queued events, each job of a batch one; further ones are answered 503 */
#define LIMIT_WRITER_QUEUE 16384
/* events per transaction */
#define LIMIT_WRITER_BATCH 1024
/* one scheduling pass, in looks at a node of some 5 ns: 5 ms; the next pass goes on ... */
#define LIMIT_PASS_WORK (1000 * 1000)
/* ... after this: a queue that is too long for a pass takes a fifth of the writer's time; a shorter one in
 * proportion */
#define PASS_REST_MS 20
/* what a visit to a queue entry costs apart from its nodes, in such looks */
#define PASS_VISIT_WORK 200
/* questions (explain, plan, rehearse, queue) that wait; further ones are answered 503 */
#define LIMIT_QUESTIONS 1024
/* questions that one copy of the process answers, all from the state of one moment */
#define LIMIT_QUESTIONS_AT_ONCE 64
/* a question that takes longer is asked once more, then answered 503 */
#define LIMIT_QUESTION_MS 10000
/* the next copy comes this many times later than the last one took: copies take 1 % of the writer's time */
#define QUESTION_PACE 100
/* how much the process of a question gives way to others */
#define QUESTION_NICE     10
#define WAL_PASSIVE_BYTES (16 * MIB)
#define WAL_FORCED_BYTES  (256 * MIB)
/* the log's size from the start, so that no commit has to grow the file */
#define WAL_GROWN_BYTES (8 * MIB)
/* an idle controller checkpoints a log above this: 130 commits, so fewer than 1 in 100 waits */
#define WAL_IDLE_BYTES (4 * MIB)
/* how long a forced checkpoint waits for readers, which take less than 10 ms */
#define WAL_FORCED_WAIT_MS 100
/* a copy of the database gives up when the log reaches this size: at 256 MiB a commit would wait for readers;
 * at 20 MB/s, the most that submissions write, a copy has 10 s for its pages, 5 GB of them */
#define LIMIT_COPY_LOG_BYTES (192 * MIB)
/* pages of 4 KiB that a copy reads at a time: 1 MiB, less than 2 ms of the disk */
#define COPY_STEP_PAGES 256
/* after each such piece the scrub of the database, which begins with the controller, rests for so many times
 * as long: 20 GB take some minutes, and the disk is free for others most of the time */
#define SCRUB_REST 4
/* when the scrub looks again at a page that a checkpoint may be writing */
#define SCRUB_AGAIN_US 20000
/* instructions of SQLite between two looks whether a scrub is to stop: some ms */
#define SCRUB_STOP_STEPS 100000
/* automatic backups: at most this much work is lost with a disk */
#define DEFAULT_BACKUP_INTERVAL_MS (10 * 60 * 1000)
/* an hour's worth */
#define DEFAULT_BACKUP_KEEP 6
#define LIMIT_BACKUP_KEEP   1000
/* the longest wait for the first backup after a start; also the pause before a failed backup is retried */
#define BACKUP_FIRST_MS 60000
/* a controller that was restored from a backup asks nodes for a day for the attempts since then */
#define LOST_ASKED_MS (24LL * 3600 * 1000)
/* attempts that are listed as lost: 100 bytes each */
#define LIMIT_LOST_ROWS 1000000
/* findings of one kind that `gpuctl admin check` lists one by one */
#define LIMIT_CHECK_FINDINGS 20
/* attempts that a node reports at a time: each costs the controller a lookup of the attempt and its job */
#define LIMIT_JOURNAL_ENTRIES 32
/* greatest difference between the clocks of controller and node in attempts that are reported again */
#define JOURNAL_SLACK_MS (10 * 60 * 1000)
/* bytes of one of the two files of a node's journal: 40,000 attempts, whatever their age */
#define LIMIT_JOURNAL_BYTES (4 * MIB)
/* the pages of 1,024 submissions; a larger cache was not faster */
#define LIMIT_WRITER_CACHE_BYTES (4 * MIB)
/* rows that one statement inserts: a third cheaper than one by one, and twice as many save 2 % more */
#define STORE_INSERT_ROWS 8
/* SQLite's default */
#define LIMIT_READER_CACHE_BYTES (2 * MIB)
/* waiting and running jobs: 0.6 GB at 600 bytes each */
#define LIMIT_LIVE_JOBS 1000000
/* projects, users, and users within a project without live jobs and limits, remembered only for their use:
 * 200 bytes each */
#define LIMIT_ACCOUNTS_KEPT 4096
/* accounts with limits: each placement checks its own, each change of a quota checks all */
#define LIMIT_ACCOUNTS_LIMITED 4096
/* accounts per page: 1 MiB of JSON with ten users each */
#define LIMIT_ACCOUNT_ROWS 200
/* users that are listed with a project */
#define LIMIT_ACCOUNT_USERS 100
/* people of one project, 40 bytes each in its row */
#define LIMIT_PROJECT_MEMBERS 1000
/* GPU types for which one account has quotas or bounds */
#define LIMIT_ACCOUNT_TYPES 64
/* of quotas and bounds: more than any cluster has */
#define LIMIT_ACCOUNT_GPUS 1000000
/* in thousandths: a weight of 0.001 to 1,000 */
#define LIMIT_WEIGHT 1000000
/* GPU hours per period: a million GPUs for a year */
#define LIMIT_GPU_HOURS    8784000000LL
#define LIMIT_PERIOD_MIN_S 60
#define LIMIT_PERIOD_MAX_S (366LL * 24 * 3600)
/* after this time past use counts half; gpuctld --share-half-life */
#define DEFAULT_SHARE_HALF_LIFE_MS (7LL * 24 * 3600 * 1000)
#define LIMIT_SHARE_HALF_LIFE_MS   (366LL * 24 * 3600 * 1000)
/* ended jobs whose outcome is remembered, 16 bytes each, for submissions that were read before these jobs
 * ended: as many as four batches of the writer end; a submission that depends on an older one must be sent
 * again */
#define LIMIT_ENDED_JOBS 4096
/* moments that wait for their commit: for each event of a batch that a job is stored, that it has its GPUs,
 * and that another has ended, and as many again; further moments are not recorded */
#define LIMIT_COMMIT_MOMENTS (6 * LIMIT_WRITER_BATCH)
/* ends whose commit time is remembered: minutes of the busiest cluster, 16 bytes each */
#define LIMIT_RECENT_ENDS 4096
/* ended attempts, remembered for exit reports that are repeated after a lost answer: seconds of the busiest
 * cluster */
#define LIMIT_ENDED_ATTEMPTS 1024
/* one event of a log stream: small enough for fairness between readers */
#define LIMIT_LOG_PIECE_BYTES (32 * KIB)
/* records of an index that are read at once: 4 KiB */
#define LIMIT_INDEX_BLOCK_RECORDS 128
/* records that are passed at once in the search for a wanted one: as many bytes of an index as a piece has */
#define LIMIT_LOG_PASSED_RECORDS 1024
/* output that one answer of a search looks at: 0.1 s for a text; its cursor goes on from there ... */
#define LIMIT_SEARCH_BYTES (16 * MIB)
/* ... or after this time: expressions are slower, and others wait for the thread of searches */
#define LIMIT_SEARCH_US (250 * 1000)
/* a longer line counts as several: the C library takes time in the square of the length, 20 ms of this */
#define LIMIT_SEARCH_LINE_BYTES 4096
/* bytes of a stream that a search reads at once */
#define SEARCH_BUFFER_BYTES (256 * KIB)
/* bytes of what is searched for */
#define LIMIT_SEARCH_PATTERN 256
/* characters of an expression with its repetitions written out, which are nodes of its automaton: 60 bytes
 * each */
#define LIMIT_SEARCH_NODES 1000
/* bytes after which an automaton is made anew: each may add a state, of some KiB */
#define LIMIT_SEARCH_STATES (8 * KIB)
/* bytes of lines in one answer: 256 lines of the greatest length */
#define LIMIT_SEARCH_ANSWER_BYTES MIB
/* searches of output that wait, of one user and in all: 16 s of the thread of searches at most */
#define LIMIT_LOG_SEARCHES_OWNER 8
#define LIMIT_LOG_SEARCHES       64
/* streams whose sync state is remembered, 300 bytes each */
#define LIMIT_LOG_SYNC_ENTRIES 16384
/* with less free space submissions, blobs and artifacts are refused: a twentieth of the disk, but no less
 * than the exits of a full cluster need ... */
#define MIN_FREE_LEAST_BYTES (256 * MIB)
/* ... and no more than output can write in a minute at 300 Mbit/s */
#define MIN_FREE_MOST_BYTES (2 * GIB)
/* released when the disk is full: 16,000 cancels, exits and reports at 4 KiB each; on a disk below 1 GiB a
 * sixteenth of it */
#define RESERVE_FILE_BYTES (64 * MIB)

/* --- the HTTP thread --- */
/* a sender's share of a turn of the loop while others ask, too: four small requests, so another sender waits
 * for these and not for all that were sent at once */
#define SENDER_TURN_US 100
/* time on the writer's and helper threads that a sender's requests under way take, while others ask: one or
 * two submissions, which another sender's change waits for */
#define SENDER_WORK_US 100
/* time in a turn of the loop in which a batch of submissions is read: some ten specs; a request of somebody
 * else waits for it */
#define BATCH_TURN_US 200
/* what a request costs beside its handler: the kernel's part and the library's */
#define SENDER_REQUEST_US 20
/* between two requests of an address without a valid token, while others ask: a page and its files take some
 * ten of these, and guesses at tokens stay slow */
#define SENDER_STRANGER_MS 1
/* senders that asked within this time count as asking: people who look at a page, and polls of a notebook */
#define SENDER_RECENT_MS 10000
/* senders that are remembered without an open request, 200 bytes each */
#define LIMIT_SENDERS_KEPT 1024
/* how long a request waits for its turn before it is refused, and then has to be away: our clients wait 30 s
 * for an answer, and so try twice; gpuctld --request-wait */
#define DEFAULT_REQUEST_WAIT_MS (10LL * 1000)
/* when to try again what failed for a reason that passes */
#define RETRY_AFTER_MS 1000
/* path and query: 200 ids of a filter, and within LIMIT_HEADER_BYTES */
#define LIMIT_URI_BYTES (4 * KIB)
/* a route knows at most 10, and `state` may come once per state */
#define LIMIT_QUERY_PARAMETERS 32
/* bytes of a body that are read after it was refused, so that the refusal arrives: a whole batch of
 * submissions */
#define LIMIT_DRAIN_BYTES (5 * MIB)
/* connections that one daemon of the HTTP library serves */
#define LIBRARY_SHARD_CONNECTIONS 1024
/* streams into running jobs, of all people and of one: two connections each, and up to twice 64 KiB that the
 * other side has not taken: 128 MiB at most */
#define LIMIT_STREAMS       1024
#define LIMIT_STREAMS_OWNER 512
/* how long a stream waits for both of its sides: the node answers its poll at once, and connects */
#define STREAM_JOIN_MS 10000
/* how often it is looked whether the tokens of those who hold streams still stand */
#define STREAM_LOOK_MS 10000
/* what a stream over TLS has to send when it ends: that long it may take */
#define TLS_RELAY_FLUSH_MS 10000
/* one read of a stream: a frame and its head */
#define STREAM_PIECE_BYTES (64 * KIB)
/* bytes requested of a streamed reply at once: half of LIMIT_CONNECTION_MEMORY */
#define LIMIT_STREAM_BLOCK_BYTES 4096
/* event bytes that wait for one client */
#define LIMIT_SSE_FILL_BYTES (64 * KIB)
/* cached specs of jobs that just came: a batch of the writer at 64 connections */
#define LIMIT_SPECS_KEPT 64
/* larger specs are not cached but read again: 64 of these take 5 MiB decoded */
#define LIMIT_SPEC_KEPT_BYTES (16 * KIB)
/* a request with a path of 60 characters */
#define REQUEST_BLOCK_BYTES 512
/* a submission on its way to the writer */
#define ASK_BLOCK_BYTES 1280
/* free blocks of each size that are kept: one batch of the writer */
#define LIMIT_BLOCKS_KEPT 1024
/* room for the receipt of a submission */
#define RECEIPT_BYTES 96
/* the kernel's default: all agents reconnect at once */
#define LIMIT_LISTEN_BACKLOG 4096
/* descriptors that are no connection: store, logs, blobs in transfer */
#define LIMIT_OTHER_FILES 256
/* the reason of a drain or fence, for people */
#define LIMIT_REASON_BYTES 255
#define LIMIT_TOKEN_LIFE_S (365LL * 24 * 3600)
/* for tokens of people; tokens of nodes last until they are revoked */
#define DEFAULT_TOKEN_LIFE_S (30LL * 24 * 3600)
/* sessions of browsers: a working day, and the page renews its own */
#define SESSION_LIFE_S (12LL * 3600)
/* from `gpuctl open` until the browser has the link */
#define SESSION_CODE_S 60LL
/* of one token, that nobody has used yet */
#define LIMIT_SESSION_CODES 8
/* sessions that were ended before their time; above these the oldest is forgotten: 100 bytes each */
#define LIMIT_SESSIONS_ENDED 1024
/* for join tokens: an hour is enough to paste a line, a week to set up a room */
#define DEFAULT_JOIN_LIFE_S 3600LL
#define LIMIT_JOIN_LIFE_S   (7LL * 24 * 3600)
/* join tokens are kept this long after their end, so that the answer is "expired" and not "unknown" */
#define JOIN_KEPT_MS (7LL * 24 * 3600 * 1000)
/* the cluster's authority: nodes that joined trust only this certificate, so it outlives the machines */
#define TLS_AUTHORITY_LIFE_S (10LL * 365 * 24 * 3600)
/* the controller's own certificate: two years; a start in its second year renews it */
#define TLS_SERVER_LIFE_S (2LL * 365 * 24 * 3600)
#define TLS_RENEW_S       (365LL * 24 * 3600)
/* certificates are valid from a little earlier: clocks of a cluster may differ by minutes */
#define TLS_BACKDATE_S 3600
/* between two checks of the free space: at most 100 MB are written meanwhile */
#define SPACE_LOOK_MS 1000
/* for answers in progress when the server ends */
#define CLOSE_LINGER_MS 2000

/* --- who used what --- */
#define HOUR_MS 3600000LL
/* rows that one attempt adds at its end: 42 days; what lies before counts for the first of them */
#define LIMIT_HOURS_CHARGED 1000
/* three years: for budgets of this year and the two before */
#define DEFAULT_KEEP_USAGE_MS (1095LL * 24 * HOUR_MS)
/* rows of an answer: a month in days for 600 users, 6 MB */
#define LIMIT_USAGE_ROWS 20000
/* a price of a GPU for an hour, and prices of GPU types and pools */
#define LIMIT_PRICE  1000000
#define LIMIT_PRICES 256

/* --- traces --- */
/* ends of jobs and attempts that wait for their spans to be made, 16 bytes each: as many as a busy cluster
 * has while a collector is away for five minutes */
#define LIMIT_TRACE_ENDS 32768
/* spans of one request to the collector: some 0.5 MB, of the 4 MB that collectors take */
#define TRACE_BATCH_SPANS 512
/* the first span of a request waits at most so long for others */
#define TRACE_BATCH_MS 1000
/* a collector that has not answered by then is away */
#define TRACE_REPLY_MS 10000
/* a request that a collector could not take is sent again after this, doubling ... */
#define TRACE_AGAIN_MS 500
/* ... up to this, which also bounds what its Retry-After asks for ... */
#define TRACE_AGAIN_MAX_MS 30000
/* ... until the request is so old: then its spans are dropped */
#define TRACE_GIVE_UP_MS (5 * 60 * 1000)
/* a controller that ends sends what it has for so long */
#define TRACE_END_MS 1000
/* of a collector's answer: a count and a sentence */
#define LIMIT_TRACE_REPLY_BYTES (64 * KIB)
/* headers for the collector, as their file has them */
#define LIMIT_TRACE_HEADERS_BYTES (16 * KIB)
/* looks at an event of a job for the staging before an attempt: as many as one page of its history */
#define LIMIT_TRACE_EVENTS LIMIT_LIST_ROWS
/* --- audit --- */

/* the last use of a token is noted to this */
#define TOKEN_USE_MS HOUR_MS
/* whose token ends within this time is told so with each answer */
#define TOKEN_WARN_MS (7LL * 24 * HOUR_MS)

/* rows of the audit; beyond them the oldest go: 2 GB, of 25,000 changes a day in 400 days */
#define LIMIT_AUDIT_ROWS 10000000
/* rows of the audit that one answer looks at: 5 ms */
#define LIMIT_AUDIT_SCAN 5000
/* a row names the first bytes of a path, and of the body of a request of operators and administrators */
#define LIMIT_AUDIT_BYTES 1024
/* refused requests that are noted: so many at once, and one more each of these times, which are 25 MB a day.
 * Of others their number is */
#define LIMIT_AUDIT_REFUSALS 100
#define AUDIT_REFUSAL_MS     1000
/* who looks at the same thing of others again within this time is noted once; so many are remembered, of 16
 * bytes each */
#define AUDIT_LOOK_MS         HOUR_MS
#define LIMIT_AUDIT_LOOKS     4096
#define DEFAULT_KEEP_AUDIT_MS (400LL * 24 * HOUR_MS)

/* --- secrets --- */
/* of one person, of one project, and of all: 64 MiB of the largest, which a new key seals in one transaction
 */
#define LIMIT_SECRETS_OF_OWNER 64
#define LIMIT_SECRETS          1024
/* the largest value in base64, with its name and its project */
#define LIMIT_SECRET_BODY_BYTES (96 * KIB)
/* keys in the file: the newest, and older ones that a rotation has not come to the end with */
#define LIMIT_SECRET_KEYS 8

/* --- schedules --- */
/* of one person, and of all: each run costs what a submission does, and rows are read one by one */
#define LIMIT_SCHEDULES_OF_OWNER 100
#define LIMIT_SCHEDULES          10000
/* runs of schedules that are with the writer at a time: all that are due at midnight must not fill its queue
 */
#define LIMIT_SCHEDULE_RUNS 32
/* "0,1,2,...,59" for minutes, and as much for the other fields */
#define LIMIT_CRON_BYTES 512
/* "America/Argentina/ComodRivadavia" has 32 characters */
#define LIMIT_ZONE_NAME_BYTES 64
/* a file of the tz database; the largest has 4 KB */
#define LIMIT_ZONE_BYTES 65536
/* a run that is so late was missed: a restart takes less, and the next run of the same schedule comes a
 * minute later at the earliest */
#define SCHEDULE_LATE_MS 60000
/* the clock may be set: so often is it looked at */
#define SCHEDULE_LOOK_MS 10000
/* after the writer had no room for a run */
#define SCHEDULE_PAUSE_MS 1000
/* who logged in last so long ago counts as gone: a month of holidays */
#define SCHEDULE_LOGIN_MS (30LL * 24 * HOUR_MS)

/* --- webhooks --- */
/* of one person, and of all: each event is compared with each, 10 ns */
#define LIMIT_WEBHOOKS_OF_OWNER 20
#define LIMIT_WEBHOOKS          1000
/* deliveries of a webhook that wait; above these the oldest is given up: 8 bytes each in memory, 200 on disk
 */
#define LIMIT_WEBHOOK_PENDING 10000
/* tries of a delivery. The first pause is DEFAULT_WEBHOOK_PAUSE_MS, each next one three times as long up to
 * WEBHOOK_PAUSE_STEPS first ones (8 h), and up to a fifth is added to each: 20 to 25 h in all */
#define LIMIT_DELIVERY_TRIES     11
#define DEFAULT_WEBHOOK_PAUSE_MS 5000
#define LIMIT_WEBHOOK_PAUSE_MS   600000
#define WEBHOOK_PAUSE_STEPS      5760
/* a webhook that no try has reached for so many first pauses (3 days) is disabled when a delivery is given up
 */
#define WEBHOOK_PATIENCE_STEPS 51840
/* of one try; a receiver that does more than to note the event should answer first */
#define WEBHOOK_TIMEOUT_MS 10000
/* deliveries of a webhook that are read where the webhook is shown: 0.1 ms */
#define LIMIT_NEWEST_DELIVERIES 20
/* requests under way at a time, one of each webhook: 100 KiB each */
#define LIMIT_WEBHOOK_REQUESTS 16
/* of the answer to a delivery, which is not used */
#define LIMIT_WEBHOOK_ANSWER_BYTES 16384
#define LIMIT_WEBHOOK_URL_BYTES    2048
/* deliveries that were given up and are replayed with one request */
#define LIMIT_REPLAY 1000
/* deliveries stay a week after their event: for a weekend, and to see what was told */
#define KEEP_DELIVERIES_MS (7LL * 24 * HOUR_MS)

/* --- events of all jobs --- */
/* the last changes of jobs that have events: a stream whose client is away or slow for that long has a gap.
 * 100 bytes each, and with their events, which are read when somebody follows, some 600: 6 MB */
#define LIMIT_EVENT_RING 10000
/* of them looked at before others have a turn: 40 us each where they must be read */
#define EVENT_RING_PIECE 64

/* --- the overview --- */
/* one answer serves everybody who asks within this time */
#define OVERVIEW_FRESH_MS 4000
/* names in it: of people with the most GPUs, and of nodes that something is wrong with */
#define OVERVIEW_USERS    20
#define OVERVIEW_PROBLEMS 50
/* nodes, which are counted with one query, and allocations of a piece of it: 2 ms and 0.3 ms */
#define OVERVIEW_PIECE_NODES       100
#define OVERVIEW_PIECE_ALLOCATIONS 100

/* --- the queue --- */
/* one answer serves everybody who asks the same within this time, and this many times as long as it took: a
 * page that looks at a queue for which a copy computes for a second costs a tenth of a core */
#define QUEUE_FRESH_MS 4000
#define QUEUE_PACE     10
/* different questions whose answers are kept, 0.6 MB each at most: as many as one copy answers */
#define LIMIT_QUEUE_ANSWERS 64

/* --- simulations of the jobs that have ended --- */
/* jobs of one, the newest; older ones are left out: 1 KB each while they are replayed, and 0.2 ms, or 2 ms
 * where most of them wait */
#define LIMIT_SIMULATION_JOBS 20000
/* nodes of one, and their GPUs: 2 KB a node and 0.2 KB a GPU */
#define LIMIT_SIMULATION_NODES 10000
#define LIMIT_SIMULATION_GPUS  200000
/* the time of one; policies that are not replayed by then have no result */
#define LIMIT_SIMULATION_MS 60000
/* how much its thread gives way to others: as far as a thread can that holds a lock now and then, which a
 * thread that only runs while nobody else does might not give back */
#define SIMULATION_NICE 19
/* simulations that wait, in all and of one user, while another one runs: the last of them takes some minutes,
 * as long as a person may wait */
#define LIMIT_SIMULATIONS       4
#define LIMIT_SIMULATIONS_OWNER 1
/* one answer serves everybody who asks the same within this time: a week of jobs is then hardly another */
#define SIMULATION_FRESH_MS (5 * 60 * 1000)
/* answers that are kept, and questions under way: 30 KB each */
#define LIMIT_SIMULATIONS_KEPT 16
/* how often it is seen whether the clients of a simulation are still there */
#define SIMULATION_LOOK_MS 500

/* --- GPUs, one by one --- */
/* rows per page, which is the default, too: 0.5 MB, 5 ms of the HTTP thread; 8 pages for 1,000 nodes */
#define LIMIT_GPU_ROWS 1000
/* nodes that a page of a filtered list looks at: 25 ms, in pieces */
#define LIMIT_GPU_NODES 1000
/* GPUs after which others have their turn, of nodes that are read together */
#define GPUS_PIECE       32
#define GPUS_PIECE_NODES 16
/* one collection of who holds which devices serves everybody who asks within this time: a walk over all pages
 * collects once */
#define HOLDERS_FRESH_MS 2000
/* allocations of a piece of it: 0.3 ms */
#define HOLDERS_PIECE 100

/* --- what nodes use --- */
/* a record of a node each 30 s for 24 h: 68 KiB of a node without GPUs and 248 KiB of one with 8, which is
 * 2.5 GB for 10,000 of these */
#define SAMPLE_RING_STEP_MS 30000
#define SAMPLE_RING_SLOTS   2880
/* records that wait for the disk, of 0.6 KiB with 64 GPUs; 10,000 nodes bring 333 a second */
#define LIMIT_RINGS_WAITING 4096
/* a sample that is older says nothing of now: 18 of an agent's default, and more than Prometheus looks back
 * for by two scrapes */
#define SAMPLE_STALE_MS 180000
/* GPUs with lines at /metrics: 8 lines of some 120 bytes each, 3.9 MB in all */
#define LIMIT_METRICS_GPUS 4096
/* nodes with lines at /metrics: 3 lines each, 1 MB in all */
#define LIMIT_METRICS_NODES 4096
/* nodes, or allocations, of one piece of that page: 60 us and more with many GPUs */
#define METRICS_PIECE_NODES       4
#define METRICS_PIECE_ALLOCATIONS 16

/* --- identity provider --- */
/* a group's name, and all groups of a person with a line each: providers cut longer lists, too */
#define LIMIT_GROUP_BYTES  128
#define LIMIT_GROUPS_BYTES (8 * KIB)
/* of tokens that a login gives: a working day, after which the groups are read again ... */
#define DEFAULT_LOGIN_LIFE_MS (12 * HOUR_MS)
/* ... and no more than this */
#define LIMIT_LOGIN_LIFE_MS (7LL * 24 * HOUR_MS)
/* an ID token: providers that name all groups in it send 8 KiB */
#define LIMIT_ID_TOKEN_BYTES (32 * KIB)
/* an ID token is to be used at once: it was made so long ago at most, and clocks may differ so much */
#define ID_TOKEN_AGE_MS    (10 * 60 * 1000LL)
#define ID_TOKEN_LEEWAY_MS (2 * 60 * 1000LL)
/* ID tokens that were used, until they are too old: 1,000 logins in 12 minutes, of 40 bytes */
#define LIMIT_LOGINS_KEPT 1024
/* logins that wait to be checked, each for as long as the provider takes; further ones are answered 429 */
#define LIMIT_LOGINS_WAITING 32
/* submissions that wait for the digest of an image, one registry after the other; further ones are answered
 * 429 */
#define LIMIT_IMAGES_WAITING 32
/* for the answer of a registry, less than clients wait for the controller */
#define IMAGE_ASK_MS 10000
/* a manifest, or a list of them: registries take 4 MiB */
#define LIMIT_MANIFEST_BYTES (4 * MIB)
/* what the identity provider answers: its keys, or where they are */
#define LIMIT_ISSUER_BYTES (256 * KIB)
#define LIMIT_ISSUER_KEYS  64
/* it has so long to answer, and is left alone for so long when it has not */
#define ISSUER_REPLY_MS 5000
#define ISSUER_REST_MS  5000
/* an ID token with a key that is not known has the keys read again, once in this time */
#define ISSUER_KEYS_MS (60 * 1000LL)
/* in any case they are read again after this, so that a key that was withdrawn counts no more */
#define ISSUER_KEYS_OLD_MS HOUR_MS
/* RSA keys of fewer bits are not used */
#define ISSUER_RSA_BITS 2048

#endif
