/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit of the system, with the calculation behind it. */
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
/* inline files of one job, decoded; larger files are uploaded as blobs */
#define LIMIT_INLINE_BYTES (1 * MIB)
/* an exit report: 64 KiB each of log tails and of results in base64, of JSON and of error files; 1,024 ranks
 * with 300 bytes each */
#define LIMIT_REPORT_BYTES (640 * KIB)
/* one upload of log bytes */
#define LIMIT_LOG_CHUNK_BYTES (1 * MIB)
#define LIMIT_BLOB_BYTES      (1 * GIB)
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
/* rows per page; the default is 50 */
#define LIMIT_LIST_ROWS         200
#define LIMIT_LIST_DEFAULT_ROWS 50
/* jobs that a page of a filtered list looks at: 2 ms of the HTTP thread, at 4 us each */
#define LIMIT_SCAN_ROWS 500
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
/* a transaction of retention takes fewer pieces when one has taken longer than this, its wait for the disk
 * included, and more when it took less than half of it */
#define RETENTION_PIECES_MS 10
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
#define RETENTION_REST 4
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

/* --- job spec --- */
#define LIMIT_GPUS          65536
#define LIMIT_NAME_BYTES    63
#define LIMIT_COMMAND_WORDS 4096
/* well below Linux's 128 KiB for one argument */
#define LIMIT_COMMAND_BYTES     (64 * KIB)
#define LIMIT_ENV_VARIABLES     512
#define LIMIT_ENV_BYTES         (64 * KIB)
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
#define LIMIT_RETRIES      100
#define LIMIT_TIME_MS      (366LL * 24 * 3600 * 1000)
#define LIMIT_GRACE_MS     (3600LL * 1000)
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
/* names of a sweep; each becomes a variable of the ranks */
#define LIMIT_SWEEP_NAMES       16
#define LIMIT_SWEEP_VALUE_BYTES (1 * KIB)
/* jobs that one job depends on: enough to join a sweep of 64 */
#define LIMIT_DEPENDENCIES 64
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
/* samples in a heartbeat, and GPUs in a sample and in a heartbeat: 20 KiB, beside 40 KiB of a full node's
 * attempts; what has no room goes with the next heartbeat */
#define LIMIT_SAMPLES     64
#define LIMIT_SAMPLE_GPUS 64
/* below the 30 s after which some middleboxes drop a connection */
#define POLL_PARK_MS      25000
#define PREPARE_EXPIRY_MS 60000
#define FLUSH_EXPIRY_MS   60000
#define LAZY_COMMIT_MS    100
/* a node that declined gets no work for this long, doubling ... */
#define DECLINE_HOLD_MS 2000
/* ... up to this */
#define DECLINE_HOLD_MAX_MS 60000
#define SSE_HEARTBEAT_MS    15000

/* --- agent and shim --- */
/* log bytes inside an exit report */
#define LIMIT_EXIT_TAIL_BYTES (64 * KIB)
/* results inside an exit report, together; others are uploaded as blobs before */
#define LIMIT_EXIT_RESULT_BYTES (64 * KIB)
/* JSON texts of the results, together: a value above this is sent as a pickle only */
#define LIMIT_EXIT_JSON_BYTES (64 * KIB)
/* one error file: a traceback of 100 frames is 10 KiB; longer files are left out */
#define LIMIT_ERROR_FILE_BYTES (16 * KIB)
/* the error files of one report, together: those of the ranks that failed first */
#define LIMIT_EXIT_ERROR_BYTES (64 * KIB)
/* the quote of a rank's error message in a sentence for people */
#define LIMIT_SAID_BYTES 300
/* one datagram of a rank: a metric of 250 characters is 400 bytes, and one may carry many */
#define LIMIT_RANK_MESSAGE_BYTES (64 * KIB)
/* one stream of one rank: days of a talkative job; the first and the last part are kept, the bytes between
 * are counted and dropped; gpuctld and gpuagent --log-limit */
#define LIMIT_STREAM_BYTES (1 * GIB)
/* bounds of the setting: room for both parts; an offset that no honest job reaches */
#define LIMIT_STREAM_MIN_BYTES (1 * MIB)
#define LIMIT_STREAM_MAX_BYTES (1024 * GIB)
/* the last part: 40,000 lines of 100 bytes, and at most an eighth of a small limit */
#define LIMIT_TAIL_BYTES (4 * MIB)
#define STREAM_TAIL_PART 8
/* our own lines in a stream: two at its limit, and some about full disks */
#define STREAM_MARKS_BYTES 1024
/* from PREPARE or RUN to running: a longer time means that another node is slow, and this one has time */
#define START_HURRY_MS 10
/* one datagram between agent and shim */
#define LIMIT_SHIM_MESSAGE 4096
#define LIMIT_IDLE_SHIMS   2
/* kinds of ranks with a forkserver; waiting shims with workers for each kind; and how many of these may end
 * by themselves before the agent gives up on the kind */
#define LIMIT_WARM_KINDS    4
#define LIMIT_WARM_SHIMS    2
#define LIMIT_WARM_FAILURES 3
/* private memory of a waiting worker: its page tables, and pages that it wrote to */
#define WARM_WORKER_BYTES (16 * MIB)
/* a forkserver starts this long after a job of its kind, or at that job's end; it is kept this long after the
 * last such job */
#define WARM_DELAY_MS (10 * 1000)
#define WARM_IDLE_MS  (15 * 60 * 1000)
/* delay before a taken shim is replaced: its ranks get the cores first */
#define WARM_REFILL_MS     200
#define DEFAULT_WARM_MIB   2048
#define LIMIT_WARM_MIB     (1024 * 1024)
#define DEFAULT_WARM_NAMES "torch,torch.distributed"
/* processes and threads of an attempt, per device: a rank with 32 loader workers of 64 threads has 2,200 */
#define DEFAULT_PROCESSES 4096
/* the most that Linux can number */
#define LIMIT_PROCESSES (4LL * 1024 * 1024)
/* MASTER_PORT: below ip_local_port_range, which starts at 32768 */
#define DEFAULT_PORT_FIRST  20000
#define DEFAULT_PORT_LAST   29999
#define LIMIT_PAYLOAD_CACHE (20 * GIB)
/* connections of one agent: poll, heartbeat, LIMIT_AGENT_UPLOADS, and a few reports at once */
#define LIMIT_AGENT_CONNECTIONS 16
/* log uploads at once: one flooding job does not hold up the others */
#define LIMIT_AGENT_UPLOADS 4
/* a poll's reply: 160 orders with the largest spec */
#define LIMIT_AGENT_REPLY_BYTES (256 * MIB)
/* a launch file: 1,024 ranks of 2 KiB, env and argv of 64 KiB each */
#define LIMIT_LAUNCH_BYTES (4 * MIB)
/* how a node started its ranks, for people: a word, and a sentence of explanation with a path in it */
#define LIMIT_START_TEXT 300
/* id of an agent's state folder: ours have 16 bytes */
#define LIMIT_AGENT_ID_BYTES 64
/* moments that the ranks of a node report: the steps up to the first training step; only the first of each
 * name counts */
#define LIMIT_MARKS 8
/* name of such a moment: a few words, which fit a column */
#define LIMIT_MARK_NAME 40
/* why an attempt failed on a node: a path of 1,024 bytes in a sentence */
#define LIMIT_SHIM_TEXT 1280
/* depth of the folders that a job made in its own cgroup */
#define LIMIT_CGROUP_DEPTH 16
/* ids of ended attempts that a node remembers one by one: a day at one in three seconds, 640 KiB */
#define LIMIT_SEEN 32768
/* scans of a cgroup until all processes have left it: one is enough, unless processes are born meanwhile */
#define LIMIT_CGROUP_ROUNDS 16
/* between two attempts to kill the processes that remain, doubling ... */
#define SHIM_SWEEP_MS 1
/* ... up to this, for processes that sleep in a driver */
#define SHIM_SWEEP_MAX_MS 1000
/* until the next try to write an exit record that the disk refused */
#define SHIM_RECORD_RETRY_MS 1000
/* when the grace of a stop is over, the agent waits this long, then kills a shim that has been stopped
 * (SIGSTOP), as a rank of the same user may do; this is within the 10 s that a cancel has beyond its grace */
#define SHIM_DEAF_MS 5000
/* a shim that no agent contacts for this long ends; its exit record has everything */
#define SHIM_RETIRE_MS (24LL * 3600 * 1000)
/* an exit record: 1,024 ranks of 140 bytes, and the cause */
#define LIMIT_EXIT_RECORD_BYTES (256 * KIB)
/* bytes of rank 0's stderr that are searched for a taken port: a traceback is 4 KiB */
#define LIMIT_PORT_SCAN_BYTES (64 * KIB)
/* how long an unfinished line waits for its end: shorter than people notice */
#define LOG_PARTIAL_MS 200
/* pause before the agent asks again whether sent log bytes are durable */
#define LOG_SETTLE_MS 1000
/* full jitter below this after the first failure, doubling ... */
#define BACKOFF_FIRST_MS 200
/* ... up to this: 10,000 agents make 2,900 tries a second at the worst */
#define BACKOFF_MAX_MS 7000
/* between registrations that are refused, doubling ... */
#define REFUSED_FIRST_MS 1000
/* ... up to this: an agent that replaces a silent one gets in after three missed heartbeats and this */
#define REFUSED_MAX_MS     15000
#define CONNECT_TIMEOUT_MS 5000
/* for small requests; a poll gets its park time and this */
#define REQUEST_TIMEOUT_MS 10000
/* for a blob: 1 GiB at 300 KB/s */
#define TRANSFER_TIMEOUT_MS 3600000
/* why no job can get a GPU: 64 GPUs, the most that NVIDIA's library numbers, in a heartbeat of 64 KiB */
#define LIMIT_DEVICE_REASON 255
/* how long GPUs may stay in use after the last process has ended */
#define GPU_CLEAR_MS 30000
/* between two looks at a GPU: a foreign process is seen within a second, and a look takes the driver a
 * millisecond */
#define GPU_LOOK_PACE_MS 1000
/* between two looks at a GPU that a job has just left, until it is empty */
#define GPU_CLEAR_PACE_MS 100
/* time limit of a look, after which its helper is abandoned: a busy driver takes a second at most */
#define GPU_LOOK_MS 5000
/* time limit for the driver's start: some 3 s for each of 8 GPUs without persistence mode */
#define GPU_OPEN_MS 60000
/* a GPU without a look for this long counts as unknown: a hung look, and the next helper's start */
#define GPU_STALE_MS 20000
/* pause before a helper is restarted, and before a GPU whose look hung is tried again, doubled each time */
#define GPU_BACKOFF_MS     1000
#define GPU_BACKOFF_MAX_MS 60000
/* killed helpers that have not ended because the driver holds them: above this no more are started */
#define LIMIT_STUCK_HELPERS 4
/* between two starts of the library in one helper, after errors: the library remembers GPUs that were lost */
#define GPU_RESTART_MS 60000
/* memory in use that no listed process holds: drivers keep up to 0.6 GiB, a computing program has more */
#define GPU_IDLE_BYTES (1ULL << 30)

/* the end of pip's output that a failure quotes: its last errors and the lines above them */
#define LIMIT_STAGING_TEXT (4 * KIB)
/* environments that a node builds at once: pip is limited by one core and the network */
#define LIMIT_BUILDS 2
/* a line from the builder: a failure of LIMIT_STAGING_TEXT, each character escaped */
#define LIMIT_CHILD_LINE_BYTES (64 * KIB)
/* between two reports of a staging with new text: as fast as people read */
#define STAGING_TELL_MS 500
/* between two reports that only say that the staging goes on; six within STAGING_SILENT_MS */
#define STAGING_ALIVE_MS 10000
/* between SIGTERM and SIGKILL for a builder, which ends at once */
#define BUILDER_GRACE_MS 2000
/* total size of a node's environments: 15 with torch and CUDA of 6 GiB each */
#define DEFAULT_ENVIRONMENTS_GIB 100
#define LIMIT_ENVIRONMENTS_GIB   (1024 * 1024)
/* free space that environments leave on their disk; unused ones are removed for it */
#define ENVIRONMENTS_FREE_BYTES (2 * GIB)
/* an environment's marker file: 1,000 folders of 200 bytes */
#define LIMIT_MARKER_BYTES (256 * KIB)
/* environments that a node stages at once: jobs that came at the same time */
#define LIMIT_NODE_STAGINGS 256

/* --- controller --- */
/* a staging step without progress for this long is reported as stuck, with its place */
#define STAGING_SILENT_MS 60000
/* a node that failed to stage an environment is not asked for it again for this long, doubling ... */
#define STAGING_HOLD_MS 30000
/* ... up to this */
#define STAGING_HOLD_MAX_MS 900000
/* environment specs of ended jobs that are remembered, with the nodes that have them ready: 300 bytes each
 * and 60 per node */
#define LIMIT_STAGINGS_KEPT 256
/* queued events; further ones are answered 503 */
#define LIMIT_WRITER_QUEUE 16384
/* events per transaction */
#define LIMIT_WRITER_BATCH 1024
#define WAL_PASSIVE_BYTES  (16 * MIB)
#define WAL_FORCED_BYTES   (256 * MIB)
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
/* time on the writer's and helper threads that a sender's requests under way take, while others ask: five
 * submissions, which another sender's change waits for */
#define SENDER_WORK_US 400
/* what a request costs beside its handler: the kernel's part and the library's */
#define SENDER_REQUEST_US 20
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
/* a route knows at most 8, and `state` may come once per state */
#define LIMIT_QUERY_PARAMETERS 32
/* bytes of a body that are read after it was refused, so that the refusal arrives: a whole submission */
#define LIMIT_DRAIN_BYTES (2 * MIB)
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

/* --- tracking (MLflow) --- */
/* as MLflow's clients check them */
#define LIMIT_TRACKING_METRICS      1000
#define LIMIT_TRACKING_PARAMS       100
#define LIMIT_TRACKING_TAGS         100
#define LIMIT_TRACKING_ENTITIES     1000
#define LIMIT_TRACKING_INPUTS       1000
#define LIMIT_TRACKING_KEY          250 /* characters; also the next two */
#define LIMIT_TRACKING_PARAM_VALUE  6000
#define LIMIT_TRACKING_TAG_VALUE    8000
#define LIMIT_TRACKING_EXPERIMENT   500
#define LIMIT_TRACKING_RUN_ID       256
#define LIMIT_TRACKING_LOCATION     1024
#define LIMIT_TRACKING_DATASET_NAME 500
/* the descriptions of a run's models, together: 250 of 1 KiB */
#define LIMIT_TRACKING_MODELS_BYTES (256 * KIB)
/* rows per page, as in MLflow */
#define LIMIT_TRACKING_ROWS         50000
#define DEFAULT_TRACKING_ROWS       1000
#define LIMIT_TRACKING_HISTORY_ROWS 25000
/* points that a page of a job's metrics reads */
#define LIMIT_TRACKING_SCAN_ROWS 10000
/* a page of runs ends with the run that reaches this: 1,000 runs of 8 KiB */
#define LIMIT_TRACKING_PAGE_BYTES (8 * MIB)
/* a filter: run_id IN 400 ids */
#define LIMIT_TRACKING_FILTER_BYTES (16 * KIB)
#define LIMIT_TRACKING_FILTER_TERMS 64
/* each term may be a join, and SQLite allows 64 */
#define LIMIT_TRACKING_ORDER_TERMS 16
/* the registry's limits, as in MLflow: names, aliases, and values of tags and descriptions in characters */
#define LIMIT_REGISTRY_NAME  256
#define LIMIT_REGISTRY_ALIAS 255
#define LIMIT_REGISTRY_TEXT  100000
/* tags of one model or version, which are shown together: 10 MB of the longest values */
#define LIMIT_REGISTRY_TAGS 100
/* aliases of one model: 256 KB of the longest names */
#define LIMIT_REGISTRY_ALIASES 1000
/* versions of one model: one an hour for 100 years */
#define LIMIT_REGISTRY_VERSIONS 1000000
/* rows per page, as in MLflow */
#define LIMIT_REGISTRY_MODEL_ROWS   1000
#define DEFAULT_REGISTRY_MODEL_ROWS 100
#define LIMIT_REGISTRY_VERSION_ROWS 200000
/* a search delays the searches behind it: 100 times the search time of 10,000 runs; a page ends at half of it
 */
#define LIMIT_TRACKING_SEARCH_MS 5000
/* one row of an answer: a run with 200,000 metrics of 300 bytes */
#define LIMIT_TRACKING_ROW_BYTES (64 * MIB)
/* SQLite's log of changes: 4 times the length at which it goes into the database by itself; a longer one is
 * brought there between two searches, which keep it from beginning anew */
#define LIMIT_TRACKING_LOG_BYTES (16 * MIB)
/* bytes of a metrics stream that are copied into a run at once: 1,000 points in 20 ms, and more than a rank's
 * message */
#define LIMIT_TRACKING_TURN_BYTES (128 * KIB)
/* four times SQLite's default */
#define LIMIT_TRACKING_CACHE_BYTES (8 * MIB)
/* samples of attempts that wait for the tracking store, of 0.5 KiB, 6 KiB with 64 GPUs */
#define LIMIT_SAMPLES_WAITING 4096
/* pause before a run's end or metrics are written again after the disk was full */
#define TRACKING_RETRY_MS 1000
/* how long a second handle waits for the first */
#define TRACKING_BUSY_MS 5000

/* --- gpuctl --- */
/* a controller on another continent answers within 1 s */
#define CLIENT_CONNECT_MS 5000
/* the slowest answer, except those that wait or stream */
#define CLIENT_REPLY_MS 30000
/* how long a request that is safe to repeat is retried: a controller restarts within seconds */
#define CLIENT_RETRY_MS 30000
/* the first pause, doubling ... */
#define CLIENT_BACKOFF_MS 100
/* ... up to this */
#define CLIENT_BACKOFF_MAX_MS 5000
/* three missed heartbeats of an event stream */
#define CLIENT_STREAM_IDLE_S 45
/* bytes of a stream that wait to be shown; above this the stream is paused */
#define CLIENT_STREAM_BYTES (4 * MIB)
/* a reply in memory: a page of 200 jobs with their specs is 13 MiB */
#define CLIENT_REPLY_BYTES (64 * MIB)
/* files inside the spec; base64 keeps them below LIMIT_SUBMIT_BYTES */
#define CLIENT_INLINE_BYTES (512 * KIB)
/* a requirements file with all included files: 400 packages with ten hashes each */
#define CLIENT_REQUIREMENTS_BYTES (1 * MIB)
/* requirements inside the spec; longer ones are uploaded as a blob */
#define CLIENT_REQUIREMENTS_INLINE_BYTES (8 * KIB)
/* jobs in one file: a sweep, and the jobs before and after it */
#define LIMIT_FILE_JOBS 256
/* nesting of files that include files */
#define CLIENT_REQUIREMENTS_DEPTH 8
/* a job trace, unpacked: 10 million jobs of 100 bytes */
#define CLIENT_TRACE_BYTES (1 * GIB)
/* a job's bundle: code, not data */
#define CLIENT_BUNDLE_BYTES (256 * MIB)
#define CLIENT_BUNDLE_FILES 20000
/* in a folder that is too large, files are counted up to here, for the error that names the largest: a
 * second */
#define CLIENT_BUNDLE_SEEN 200000
/* nesting of folders */
#define CLIENT_BUNDLE_DEPTH 64
/* an upload from this size on is announced: a second at 10 Mbit/s */
#define CLIENT_BUNDLE_TOLD_BYTES (1 * MIB)
/* one .gitignore: far more than people write */
#define CLIENT_IGNORE_BYTES (1 * MIB)
/* values of one YAML document: each keeps its path in memory, with up to LIMIT_JSON_DEPTH keys; 64 MiB */
#define LIMIT_YAML_VALUES 8192
/* one YAML key */
#define LIMIT_YAML_KEY_BYTES 255
/* `nodes add` runs one ssh per node at once */
#define LIMIT_NODES_ADDED 64
/* start of a local instance, until its nodes are READY */
#define CLIENT_START_MS 30000
/* nodes of a local instance: more are useful only for trying things out */
#define LIMIT_NODES_STARTED 64
/* a local instance ends after ten minutes without jobs */
#define DEFAULT_IDLE_EXIT_MS 600000
/* how long `gpuctl down --force` waits for jobs that it has canceled: the grace of most jobs, and the 10 s in
 * which they end after it; then their processes are killed */
#define CLIENT_FORCE_MS 45000
/* how long it then waits for its processes to end by themselves */
#define CLIENT_STOP_MS 15000
/* then between TERM and KILL */
#define CLIENT_TERM_MS 5000
/* then from KILL to the end */
#define CLIENT_KILL_MS 5000
/* a browser that fails to start has said so within this time; one that still runs is left alone */
#define CLIENT_BROWSER_MS 1500
/* pause between two queries of --watch */
#define CLIENT_WATCH_MS 1000
/* pause between two queries of `run` for the reason why its job waits */
#define CLIENT_REASON_MS 5000
/* `run` repeats a reason after this if only its numbers changed */
#define CLIENT_SAME_REASON_MS 30000
/* an unfinished line of one rank's output is shown when it reaches this */
#define CLIENT_LINE_BYTES (64 * KIB)
/* how long to wait for the last event after the end of the output */
#define CLIENT_FOLLOW_END_MS 2000

#endif
