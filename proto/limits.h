/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the system that its programs share, each with the calculation behind it. limits_agent.h,
 * limits_controller.h, limits_tracking.h and limits_client.h have the rest. */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

#define KIB 1024LL
#define MIB (1024LL * KIB)
#define GIB (1024LL * MIB)

/* --- requests --- */
/* any JSON body but a submission: the largest, a node's report of 1,024 ranks, is 60 KiB */
#define LIMIT_JSON_BYTES (64 * KIB)
/* 1 MiB of inline files is 1.34 MiB in base64, plus 64 KiB of spec */
#define LIMIT_SUBMIT_BYTES (1536 * KIB)
/* a batch of submissions: 1,000 jobs, which hold the writer for some 15 ms, and 4,000 bytes for each of them:
 * a usual spec has 200 to 1,000 */
#define LIMIT_BATCH_BYTES (4 * MIB)
#define LIMIT_BATCH_JOBS  1000
/* batches that wait to be read: 256 of the largest are 3 s of the writer; and those of one user */
#define LIMIT_BATCHES       256
#define LIMIT_BATCHES_OWNER 64
/* batches that are read and not answered: one that is written, and others to keep the writer busy; 4,000
 * decoded specs take 16 MiB */
#define LIMIT_BATCHES_WRITTEN 4
/* inline files of one job, decoded; larger files are uploaded as blobs */
#define LIMIT_INLINE_BYTES (1 * MIB)
/* an exit report: 64 KiB each of log tails and of results in base64, of JSON and of error files; 1,024 ranks
 * with 300 bytes each */
#define LIMIT_REPORT_BYTES (640 * KIB)
/* one upload of log bytes */
#define LIMIT_LOG_CHUNK_BYTES (1 * MIB)
#define LIMIT_BLOB_BYTES      (1 * GIB)
/* files that a rank keeps: a checkpoint in a few hundred pieces; their index, which travels in one upload and
 * is read for each list */
#define LIMIT_KEPT_FILES       4096
#define LIMIT_KEPT_INDEX_BYTES (LIMIT_LOG_CHUNK_BYTES - KIB)
/* a piece of a checkpoint, which travels in one upload: large enough that few are needed, small enough that a
 * change costs little; the mean is a quarter of it */
#define LIMIT_CHECKPOINT_PIECE_BYTES (4 * MIB)
/* the manifest of a checkpoint, of all nodes: with 230,000 pieces of 36 bytes, 230 GB */
#define LIMIT_CHECKPOINT_MANIFEST_BYTES (8 * MIB)
/* pieces that one answer names as missing: 1 GB, a few seconds of sending */
#define LIMIT_CHECKPOINT_MISSING 1024
/* bytes of blobs that a person has sent and no job names, each counted as LIMIT_BLOB_ROW_BYTES at least: 16
 * of the largest; of small ones 260,000, of 150 bytes of memory each */
#define DEFAULT_UPLOAD_QUOTA_BYTES (16 * GIB)
#define LIMIT_UPLOAD_QUOTA_BYTES   (1024 * GIB)
/* bytes that an upload buffers before it writes: one system call per 256 KiB, not per 4 KiB */
#define LIMIT_BLOB_GATHER_BYTES (256 * KIB)
/* a blob up to this size is a database row; a row of 64 KiB costs one commit, not four syncs */
#define LIMIT_BLOB_ROW_BYTES (64 * KIB)
/* our deepest message has 6 levels */
#define LIMIT_JSON_DEPTH 32
/* request line and headers, in a connection memory of 8 KiB */
#define LIMIT_HEADER_BYTES (6 * KIB)
/* MHD's memory pool per connection: 10,000 parked agents cost at most 80 MiB */
#define LIMIT_CONNECTION_MEMORY (8 * KIB)
/* 10,000 agents, their uploads, and people */
#define LIMIT_CONNECTIONS 16384
/* time for the headers of a request and for progress of its body: the slowest link and the slowest TLS
 * handshake take a second or two; gpuctld --client-patience */
#define DEFAULT_PATIENCE_MS (10LL * 1000)
/* a connection that is idle between requests or reads its reply gets this many times the patience: 60 s,
 * because people stop their pagers; parked polls are exempt */
#define CLIENT_IDLE_FACTOR 6
/* how often slow clients are checked within that patience */
#define CLIENT_LOOKS 10
/* reply bytes that the kernel buffers beyond those in flight: it would buffer 4 MiB for a client that does
 * not read */
#define LIMIT_UNSENT_BYTES (128 * KIB)
/* slower clients are disconnected: an eighth of a link of 64 kbit/s */
#define LIMIT_CLIENT_BYTES_S (1 * KIB)
/* bodies above LIMIT_JSON_BYTES that are being received, together: 80 of the largest submissions, or uploads
 * of 32 flooded nodes; further clients are told to retry */
#define LIMIT_BODIES_BYTES (128 * MIB)
/* of a job's tracestate: what W3C Trace Context wants passed on at least */
#define LIMIT_TRACE_STATE 512
/* rows per page; the default is 50 */
#define LIMIT_LIST_ROWS         200
#define LIMIT_LIST_DEFAULT_ROWS 50
/* jobs that a page of a filtered list looks at: 2 ms of the HTTP thread, at 4 us each */
#define LIMIT_SCAN_ROWS 500
/* a name in `after` is looked for among the newest jobs of the submitter, so many times as many: 4 ms */
#define LIMIT_NAMED_PARTS 2
/* a start of an id that is this long is looked for in the index of ids: of 100 million jobs 100 have it. Of
 * shorter ones a page finds enough among the newest jobs. */
#define LIMIT_LONG_PREFIX 4
/* ids that each submission moves in that index, to pay for the two or three moves of its own: 3 % of its cost
 */
#define JOB_INDEX_PACE 4
/* a step takes at most so many ids from each of the 32 runs that it merges: 0.2 ms of the writer */
#define JOB_INDEX_STEP 16
/* a filtered list that is older than its `since` by this much is over: jobs are listed in the order of their
 * submission, and that of their times differs where the wall clock was set back in between */
#define LIMIT_SINCE_SLACK_MS (24LL * 3600 * 1000)
/* results per page: the page ends with the result that reaches this */
#define LIMIT_RESULTS_BYTES (1 * MIB)
/* points of metrics per page: 1 MiB of JSON */
#define LIMIT_METRIC_ROWS         10000
#define LIMIT_METRIC_DEFAULT_ROWS 1000
/* of the name of a metric, in characters */
#define LIMIT_METRIC_NAME 250
/* reading a line of metrics costs its length and this, the cost of an empty line */
#define METRIC_LINE_COST 256
/* cost of one page: 10,000 points of 350 bytes */
#define LIMIT_METRIC_PAGE_BYTES (6 * MIB)
/* cost of one turn of an event stream: 1,000 empty lines */
#define LIMIT_METRIC_TURN_BYTES (256 * KIB)
/* characters */
#define LIMIT_IDEMPOTENCY_KEY 128
/* a first answer is given again for this long at least, and for twice as long at most */
#define IDEMPOTENCY_KEPT_MS (72LL * 3600 * 1000)
/* before its owner is told: evaluations and checkpoints are over by then */
#define DEFAULT_IDLE_AFTER_MS (30LL * 60 * 1000)
/* between telling and preempting: a person can answer */
#define DEFAULT_IDLE_GRACE_MS (15LL * 60 * 1000)
/* of both; a year */
#define LIMIT_IDLE_S (365LL * 24 * 3600)
/* a hundred years */
#define LIMIT_KEEP_DAYS       36500
#define DEFAULT_KEEP_JOBS_MS  (90LL * 24 * 3600 * 1000)
#define DEFAULT_KEEP_LOGS_MS  (30LL * 24 * 3600 * 1000)
#define DEFAULT_KEEP_NODES_MS (30LL * 24 * 3600 * 1000)
/* how exactly it is stored when a node was last heard, and how long the controller must itself have heard
 * nothing of a node that goes for its silence */
#define NODE_HEARD_MS      (24LL * 3600 * 1000)
#define DEFAULT_LOGS_SHARE 50 /* percent */
/* after its end the output of a job stays for so long, however full the disk is: people read it then */
#define LIMIT_LOGS_FRESH_MS (3600LL * 1000)
/* jobs and first answers that retention reads, and removes, at a time: 2 ms of the writer */
#define RETENTION_STEP_JOBS    32
#define RETENTION_STEP_REPLIES 500
#define RETENTION_STEP_BLOBS   256
/* a transaction of retention takes fewer pieces when one has taken longer than this, its share of the commit
 * included, and more when it took less than half of it */
#define RETENTION_PIECES_US 10000
/* runs that it reads at a time, and rows of each kind that it deletes of one: 3 ms of the tracking store */
#define RETENTION_STEP_RUNS      500
#define RETENTION_RUN_PIECE_ROWS 500
/* pages that retention takes out of the file of the database at a time, each the last one, in the place of a
 * free one: 2 ms of the writer */
#define RETENTION_STEP_PAGES 64
/* it does so while more than one page in so many is free: those are used again before long */
#define RETENTION_FREE_SHARE 8
/* a database of before it could shrink is written anew at the start when it is no larger: a second */
#define LIMIT_REWRITE_BYTES (64 * MIB)
/* after a transaction of retention the writer is left alone for this many times as long */
#define RETENTION_REST          4
#define LIMIT_RETENTION_REST_US 1000000
/* the first round after the start, the time between rounds, and the wait for a round that is wanted */
#define RETENTION_FIRST_MS    60000
#define RETENTION_INTERVAL_MS (3600LL * 1000)
#define RETENTION_SOON_MS     2000
/* the disk is low: no more rounds than this, which find nothing when the last one has found nothing */
#define RETENTION_LOW_MS 600000
/* a blob that nothing names stays for this long: its upload and the submission that names it are two requests
 */
#define RETENTION_BLOB_MS (24LL * 3600 * 1000)
/* a blob that nothing names counts as gone an hour before that, so that none goes between the request that
 * finds it and the submission that names it */
#define LIMIT_BLOB_UNUSED_MS (RETENTION_BLOB_MS - 3600LL * 1000)
/* when the wall clock leaps this far, or is so far ahead of the newest job at the start, nothing goes by its
 * age until the controller has run for RETENTION_DOUBT_MS: it may be the clock that is wrong */
#define RETENTION_LEAP_MS  (7LL * 24 * 3600 * 1000)
#define RETENTION_DOUBT_MS (24LL * 3600 * 1000)
/* rows of each table that one transaction deletes for a job that is removed: 1 ms */
#define RETENTION_PIECE_ROWS 200
/* the longest ?wait= */
#define LIMIT_WAIT_S 60

/* a request of MLflow's client, which sends at most 1,000,000 bytes */
#define LIMIT_MLFLOW_BYTES (1 * MIB)
/* requests of MLflow's client that wait for the tracking store: 64 MiB of metrics in batches of 1,000 */
#define LIMIT_MLFLOW_WAITING 1024
/* searches that wait for their thread: 256 of 100 ms are half a minute, and 16 are what a page or a sweep of
 * one user asks for at once; MLflow's client tries again when more are refused */
#define LIMIT_MLFLOW_SEARCHES       256
#define LIMIT_MLFLOW_SEARCHES_OWNER 16
/* pause between two looks whether the clients of searches are still there */
#define MLFLOW_LOOK_MS 500
/* listed entries of one folder of artifacts */
#define LIMIT_ARTIFACT_LIST 10000

/* --- streams into running jobs --- */
/* one frame: a read of a pipe */
#define LIMIT_FRAME_BYTES (64 * KIB)
/* a sentence in a frame */
#define LIMIT_STREAM_FAILURE_BYTES KIB
/* DATA that a client may send before the node says that it has passed them on: 20 MB/s over a way of 50 ms */
#define STREAM_CREDIT_BYTES MIB
/* words and bytes of a command: they travel in one message to the shim */
#define LIMIT_STREAM_WORDS         1024
#define LIMIT_STREAM_COMMAND_BYTES (32 * KIB)
/* streams of an attempt on a node: each has a process; of a node, whose agent needs five descriptors for each
 */
#define LIMIT_ATTEMPT_STREAMS 128
#define LIMIT_NODE_STREAMS    512

/* --- job spec --- */
#define LIMIT_GPUS 65536
#define LIMIT_CPUS 1048576
/* below this no program starts */
#define LIMIT_MEMORY_MIN_BYTES (4 * MIB)
#define LIMIT_MEMORY_BYTES     (1024LL * 1024 * GIB)
#define LIMIT_NAME_BYTES       63
#define LIMIT_COMMAND_WORDS    4096
/* well below Linux's 128 KiB for one argument */
#define LIMIT_COMMAND_BYTES (64 * KIB)
#define LIMIT_ENV_VARIABLES 512
#define LIMIT_ENV_BYTES     (64 * KIB)
/* secrets of a job, each of at most LIMIT_SECRET_BYTES: as variables they are 1 MiB, half of what Linux lets
 * a program have */
#define LIMIT_JOB_SECRETS 16
/* half of Linux's 128 KiB for one variable; a private key is 4 KiB */
#define LIMIT_SECRET_BYTES (64LL * KIB)
/* a shorter value is not masked in output: too much else looks like it */
#define LIMIT_MASKED_BYTES 8
/* volumes of a job; a job that reads more folders of a node is better served by one above them */
#define LIMIT_JOB_VOLUMES 8
/* networks of --webhook-networks and --input-networks: an organisation has some for each site */
#define LIMIT_NETWORKS 64
/* inputs of a job, and each of them as a text: a presigned URL has 1.5 KiB */
#define LIMIT_JOB_INPUTS        8
#define LIMIT_INPUT_BYTES       4096
#define LIMIT_LABELS            64
#define LIMIT_LABEL_VALUE_BYTES 255
#define LIMIT_FILES             64
/* types that a job lists by preference; labels that its constraints name, values of each, and nodes that it
 * avoids or excludes */
#define LIMIT_TYPE_ALTERNATIVES 8
#define LIMIT_CONSTRAINTS       16
#define LIMIT_CONSTRAINT_VALUES 64
#define LIMIT_NODE_NAMES        256
/* these demands as one text, which equal jobs share: 256 names of 30 bytes */
#define LIMIT_TERMS_BYTES (8 * KIB)
/* lines of a requirements file in a spec: 400 packages are 10 KiB; larger ones are uploaded as a blob */
#define LIMIT_REQUIREMENTS_BYTES (64 * KIB)
/* folders of a bundle that ranks import from */
#define LIMIT_PYTHON_PATHS 16
#define LIMIT_PATH_BYTES   1024
/* name of a container image: a registry, a repository of 255 bytes, a tag of 128, a digest */
#define LIMIT_IMAGE_BYTES 512
#define LIMIT_RETRIES     100
#define LIMIT_TIME_MS     (366LL * 24 * 3600 * 1000)
#define LIMIT_GRACE_MS    (3600LL * 1000)
/* of nodes after a failure: whoever wants to look does so within a day */
#define LIMIT_KEEP_MS (24LL * 3600 * 1000)
/* twelve heartbeats; gpuctld --lease-min lowers it for tests */
#define LIMIT_LEASE_MIN_MS (60LL * 1000)
#define LIMIT_LEASE_MAX_MS (24LL * 3600 * 1000)
#define DEFAULT_LEASE_MS   (15LL * 60 * 1000)
/* cancel, time limit, preemption */
#define DEFAULT_GRACE_MS (30LL * 1000)
/* early signal to time limit: as in Slurm, and most models save a checkpoint in less */
#define DEFAULT_EARLY_MS (60LL * 1000)
/* grace of the other ranks after one failed */
#define FAILED_GRACE_MS       (5LL * 1000)
#define DEFAULT_INFRA_RETRIES 3
/* tasks of an array or a sweep: an array waits as one job, however many tasks it has */
#define LIMIT_ARRAY_TASKS 1000000
/* parts of a list of tasks, such as 3,7,10-20: an array keeps 12 bytes of each in memory */
#define LIMIT_TASK_RANGES 4096
/* names of a sweep; each becomes a variable of the ranks */
#define LIMIT_SWEEP_NAMES       16
#define LIMIT_SWEEP_VALUE_BYTES (1 * KIB)
/* jobs that one job depends on: enough to join a sweep of 64 */
#define LIMIT_DEPENDENCIES 64
/* webhooks that a job names: 0.5 KiB of memory while it lives */
#define LIMIT_JOB_NOTIFY 8
/* on either side of 0: room for any scheme of priorities */
#define LIMIT_PRIORITY 1000
/* jobs of one resource request that a scheduling pass tries to backfill; each costs a look at the nodes */
#define LIMIT_BACKFILL_TRIES 64
/* jobs ahead of one that are considered to predict its start: 10 ms */
#define LIMIT_AHEAD 10000
/* nodes, queue entries and jobs of a snapshot of the queue for which the next snapshot waits 1 ms: at 0.1 us
 * each, snapshots take 0.1 % of the writer's time; 10,000 nodes with as many jobs: one in 2 s */
#define QUEUE_SNAPSHOT_PACE 10
/* points in time considered for that prediction, three times: 15 ms; a start that is not found by then is
 * later */
#define LIMIT_FORECAST_STEPS 2000000
/* rows of an answer about the queue: more than a person reads, 0.6 MB; and where nothing is said */
#define LIMIT_QUEUE_ROWS 1000
#define QUEUE_ROWS       100
/* what the reasons of such an answer may cost, in looks at nodes, jobs and queue entries of less than 1 us:
 * 0.6 s for 1,000 rows of 30,000 kinds of jobs; rows beyond have none */
#define LIMIT_QUEUE_WORK (1000 * 1000)
/* running jobs in such an answer, the first to end first, and the nodes that are named of each: a time line
 * of more lines is no picture */
#define LIMIT_QUEUE_RUNNING 100
#define LIMIT_QUEUE_NODES   64
/* named nodes per failed test */
#define LIMIT_NODES_NAMED 8
/* GPU types, and pools, that are tried as changes of a waiting job; each costs a look at the queue */
#define LIMIT_CHANGE_TRIES 16
/* running jobs whose ends a forecast goes through one by one until a gang fits: more than the largest gang
 * has nodes and GPUs */
#define LIMIT_AVAILABILITY 16384
/* patterns of jobs whose run times are remembered: 15 MB at 300 bytes each */
#define LIMIT_PATTERNS 50000
/* NAME_MAX of the nodes' file systems */
#define LIMIT_PATH_PART_BYTES 255

/* --- nodes --- */
/* CPU slots; no machine has more GPUs */
#define LIMIT_NODE_DEVICES 1024
/* a device's UUID: NVML's own buffer; a node's address, boot id, host id and version: a DNS name */
#define LIMIT_UUID_BYTES      96
#define LIMIT_NODE_TEXT_BYTES 255
/* one attempt per device */
#define LIMIT_NODE_ATTEMPTS 1024
#define LIMIT_ATTEMPT_NODES 4096
/* nodes of a gang that get each other's addresses: 6 KiB in the order of each */
#define LIMIT_ADDRESSED_NODES 256
#define LIMIT_POOLS           1024
#define LIMIT_GPU_TYPES       256
/* maintenance windows that have not ended: each is checked for each node */
#define LIMIT_WINDOWS 1000
/* names of nodes in one window: 16 KiB; pools and all nodes need no list */
#define LIMIT_WINDOW_NODES 256
/* the year 9999 */
#define LIMIT_WALL_MS 253402300799999LL
/* a node that leaves within this time gets no job of unknown length that other nodes could hold: a working
 * day and its night */
#define LEAVES_SOON_MS (24LL * 3600 * 1000)
/* a wall clock that jumped by more than this is read anew; less is the drift of two clocks */
#define WALL_STEP_MS 1000
/* how often waiting jobs are reconsidered while nodes are about to leave: at each look fewer jobs are short
 * enough */
#define LEAVES_LOOK_MS 60000

/* --- time of the protocol, milliseconds --- */
#define HEARTBEAT_MS 5000
/* a node becomes SUSPECT after this many */
#define HEARTBEATS_MISSED 3
/* unanswered heartbeats of one agent: while the network is cut each heartbeat is lost, and the first one
 * after that must not wait for the lost ones */
#define HEARTBEATS_OUT 4
/* seconds between two samples of what an attempt uses, as MLflow measures by itself; and an hour at most */
#define SAMPLE_S       10
#define LIMIT_SAMPLE_S 3600
/* processes that are looked at for a sample where no cgroup counts what they use: 40 ms of the agent's loop
 */
#define LIMIT_SAMPLE_PROCESSES 4096
/* samples in a heartbeat, GPUs and ranks in a sample, and in a heartbeat as many of both together: 22 KiB,
 * beside 40 KiB of a full node's attempts; what has no room goes with the next heartbeat */
#define LIMIT_SAMPLES      64
#define LIMIT_SAMPLE_GPUS  64
#define LIMIT_SAMPLE_RANKS 16
/* a GPU with a lower utilization counts as idle */
#define GPU_IDLE_PERCENT 5
/* of what a report says of the use of GPUs: 1,000 GPUs for 30 years in milliseconds, and their energy; and of
 * disks: a petabyte */
#define LIMIT_USE 1000000000000000
/* below the 30 s after which some middleboxes drop a connection */
#define POLL_PARK_MS      25000
#define PREPARE_EXPIRY_MS 60000
/* the same of an attempt whose checkpoint is laid out first: 64 GiB at 100 MB/s */
#define RESTORE_EXPIRY_MS (15 * 60000LL)
#define FLUSH_EXPIRY_MS   60000
#define LAZY_COMMIT_MS    100
/* a node that declined gets no work for this long, doubling ... */
#define DECLINE_HOLD_MS 2000
/* ... up to this */
#define DECLINE_HOLD_MAX_MS 60000
#define SSE_HEARTBEAT_MS    15000

#endif
