/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the agent and the shim. */
#ifndef PROTO_LIMITS_AGENT_H
#define PROTO_LIMITS_AGENT_H

#include "proto/limits.h"

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
/* files that a rank keeps, together: checkpoints of a model with 7 billion parameters; gpuagent --files-limit
 */
#define DEFAULT_KEPT_GIB 64
#define LIMIT_KEPT_GIB   (64 * 1024)
/* entries and levels of a rank's folder that are looked at for these: 20 us each */
#define LIMIT_KEPT_LOOKS  (4 * LIMIT_KEPT_FILES)
#define LIMIT_KEPT_LEVELS 32
/* a folder of checkpoints that has not changed for so long is taken: longer than between two files of one
 * checkpoint, shorter than between two checkpoints; gpuagent --checkpoint-still */
#define DEFAULT_CHECKPOINT_STILL_S 10
#define LIMIT_CHECKPOINT_STILL_S   86400
/* files that change within one tick of the file system's clock look unchanged */
#define CHECKPOINT_TICK_MS 1000
/* takings that a changing file spoils, and fetches of a damaged piece */
#define CHECKPOINT_TRIES 5
/* what an ended attempt still ships: at 100 MB/s, what has changed of 60 GB */
#define CHECKPOINT_END_MS 600000
/* the last part: 40,000 lines of 100 bytes, and at most an eighth of a small limit */
#define LIMIT_TAIL_BYTES (4 * MIB)
#define STREAM_TAIL_PART 8
/* our own lines in a stream: two at its limit, and some about full disks */
#define STREAM_MARKS_BYTES 1024
/* from PREPARE or RUN to running: a longer time means that another node is slow, and this one has time */
#define START_HURRY_MS 10
/* how long the report that ranks run may wait for their exit: of a job that is over by then, the exit report
 * says both. Its commit may take 100 ms longer */
#define RUNNING_HOLD_MS 10
/* one datagram between agent and shim */
#define LIMIT_SHIM_MESSAGE 4096
#define LIMIT_IDLE_SHIMS   2
/* idle shims left by earlier attempts: a node of 16 devices starts none while its tasks follow one another;
 * each has 0.3 MiB */
#define LIMIT_KEPT_SHIMS 16
/* how long a connection of a stream may take, and how long a client may take to close when it has all */
#define STREAM_OPEN_MS  10000
#define STREAM_LEAVE_MS 10000
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
/* how long a shim waits for the controller's word on an exit before it syncs the exit record: some commits,
 * and little work is done twice when a node loses its power meanwhile */
#define SHIM_RECORD_SYNC_MS 100
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
/* tokens that a node keeps beside its newest: with a life of 30 days, those of a year and more */
#define LIMIT_EARLIER_TOKENS 16
/* after which a node's token is renewed, unless --token-life says another time */
#define DEFAULT_NODE_TOKEN_LIFE_MS (30LL * 24 * 3600 * 1000)
/* full jitter below this after the first failure, doubling ... */
#define BACKOFF_FIRST_MS 200
/* ... up to this: 10,000 agents make 2,900 tries a second at the worst */
#define BACKOFF_MAX_MS 7000
/* between registrations that are refused, doubling ... */
#define REFUSED_FIRST_MS 1000
/* ... up to this: an agent that replaces a silent one gets in after three missed heartbeats and this */
#define REFUSED_MAX_MS 15000
/* between two questions of a node that is to go: whether its work has ended */
#define LEAVE_AGAIN_MS 1000
/* without an answer, after which an agent without work ends: a controller restarts in seconds, and Slurm
 * kills 30 s after it has told a job to end, unless its KillWait says another time */
#define LEAVE_PATIENCE_MS  20000
#define CONNECT_TIMEOUT_MS 5000
/* for small requests; a poll gets its park time and this */
#define REQUEST_TIMEOUT_MS 10000
/* for a blob: 1 GiB at 300 KB/s */
#define TRANSFER_TIMEOUT_MS 3600000
/* of an arriving blob that is read at once: fewer, larger reads */
#define BLOB_BUFFER_BYTES (256 * KIB)
/* objects that a node fetches from the object store at once: more share the same network */
#define LIMIT_OBJECT_FETCHES 8
/* requests to the store for an object, each by a URL that the controller has just made: the first answer may
 * break off, or its URL have expired */
#define OBJECT_STORE_TRIES 2
/* how long objects come from the controller after the store could not be used: a node that has no way there
 * waits OBJECT_CONNECT_MS for it once in this time */
#define OBJECT_STORE_AWAY_MS (5LL * 60 * 1000)
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
/* between two looks at the folder of a volume, and how long one may take: a server that is merely busy
 * answers within it */
#define VOLUME_LOOK_MS   10000
#define VOLUME_ANSWER_MS 5000
/* the folder for checkpoints is made on a volume within this: a server that has just come back has much to do
 */
#define CHECKPOINT_FOLDER_S 60
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
/* the record of owners who have numbers of their own on a node: 50,000 of the longest names */
#define LIMIT_USERS_BYTES (4 * MIB)
/* numbers of users for owners that a node does not know (--run-as owner): distributions, containers and
 * directories use none of these */
#define DEFAULT_USER_FIRST 1900000000
#define DEFAULT_USER_LAST  1900065535
/* numbers below are those of the host's own users; and so many of a node's range serve builds */
#define USERS_LEAST     1000
#define USERS_OF_BUILDS 16
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
/* total size of a node's container images: 10 with torch and CUDA of 20 GiB each */
#define DEFAULT_IMAGES_GIB 200
/* free space below which a pull is given up, and how often that is looked at: a disk writes 2 GB/s */
#define IMAGES_FREE_BYTES (1 * GIB)
#define IMAGES_WATCH_MS   500
/* index, manifest or config of an image: registries take manifests of 4 MiB */
#define LIMIT_IMAGE_JSON_BYTES (4 * MIB)
/* a spec of the Container Device Interface: 8 GPUs with 7 MIG devices each are 200 KiB */
#define LIMIT_CDI_BYTES (4 * MIB)
/* an environment's marker file: 1,000 folders of 200 bytes */
#define LIMIT_MARKER_BYTES (256 * KIB)
/* inputs that a node fetches at once: more share the same network */
#define LIMIT_INPUT_FETCHES 4
/* total size of a node's inputs, unless --input-limit says another: a large data set, or some small ones */
#define DEFAULT_INPUTS_BYTES (100LL * GIB)
/* free space below which a fetch is given up, looked at every STAGING_TELL_MS: a disk writes 2 GB/s */
#define INPUTS_FREE_BYTES (1 * GIB)
/* files of an input that is a folder, and folders within folders: a data set of images, as people lay them
 * out */
#define LIMIT_INPUT_FILES 100000
#define LIMIT_INPUT_DEPTH 32
/* a page of a list of S3: 1,000 keys of 1 KiB, each character escaped, and as much around them */
#define LIMIT_S3_PAGE_BYTES (8 * MIB)
/* an entity tag or a time, as servers send it: hashes have 128 characters */
#define LIMIT_INPUT_VALIDATOR 512
/* what is quoted of an answer that is no file */
#define LIMIT_FETCH_PROBLEM 2048
/* a redirect to a site's file server, and those of load balancers before it */
#define INPUT_REDIRECTS 5
/* for a connection, and between two bytes of an answer */
#define INPUT_CONNECT_MS 20000
#define INPUT_SILENCE_S  60
/* tries without a new byte, 1 s, 2 s and 4 s apart, before the fetch counts as failed */
#define INPUT_TRIES 4
/* environments that a node stages at once: jobs that came at the same time */
#define LIMIT_NODE_STAGINGS 256

#endif
