/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of gpuctl. */
#ifndef PROTO_LIMITS_CLIENT_H
#define PROTO_LIMITS_CLIENT_H

#include "proto/limits.h"

/* --- gpuctl --- */
/* a controller on another continent answers within 1 s */
#define CLIENT_CONNECT_MS 5000
/* the slowest answer, except those that wait or stream */
#define CLIENT_REPLY_MS 30000
/* the same of several controllers at once: one that is away holds nobody up */
#define CLIENT_ASK_ALL_MS 5000
/* the same while gpuctl ends, which nobody may have to wait for */
#define CLIENT_CANCEL_MS 5000
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
/* what an identity provider answers, and what is kept of a login */
#define CLIENT_LOGIN_BYTES (256 * KIB)
/* a login at an identity provider that says neither how long it waits nor how often it may be asked: RFC 8628
 * has 5 s; and the most that is believed */
#define CLIENT_LOGIN_S       600
#define CLIENT_LOGIN_PAUSE_S 5
#define CLIENT_LOGIN_MOST_S  3600
/* a login is renewed when it ends within this: a command that begins now mostly ends before */
#define CLIENT_RENEW_MS (15 * 60 * 1000LL)
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
/* one message of an MCP client: a submission of LIMIT_SUBMIT_BYTES in which every other byte is escaped */
#define CLIENT_MCP_LINE_BYTES (4 * MIB)
/* an answer of an MCP tool: LIMIT_MCP_LOG_BYTES of output, each byte escaped in six */
#define CLIENT_MCP_ANSWER_BYTES (512 * KIB)
/* the spec or the nodes of a job in such an answer; longer ones are left out: a model reads 64 KiB as some
 * 20,000 tokens */
#define CLIENT_MCP_PART_BYTES (64 * KIB)
/* output of a job in one answer; the same in tokens */
#define LIMIT_MCP_LOG_BYTES   (64 * KIB)
#define DEFAULT_MCP_LOG_BYTES (16 * KIB)
/* rows of a list in one answer, of 500 bytes each */
#define DEFAULT_MCP_ROWS 20
/* how long a tool waits for the end of a job: the answer comes within CLIENT_REPLY_MS, and within the 60 s of
 * MCP clients */
#define CLIENT_MCP_WAIT_S 25
/* a request of `top`: one without an answer by then leaves the picture as it is */
#define CLIENT_TOP_REPLY_MS 5000
/* rows of each list of `top`: 70 MB of memory as JSON, and 0.1 s to draw */
#define LIMIT_TOP_ROWS 20000
/* pages of LIMIT_LIST_ROWS of each list in one reading: 2,000 rows, 1.2 MB of jobs and 10 ms of the
 * controller; the next reading goes on behind them */
#define CLIENT_TOP_PAGES 10
/* rows of each table of `top --once` */
#define LIMIT_TOP_ONCE_ROWS 100
/* requests of `top` for one kind of thing under way at once: each has a connection */
#define CLIENT_TOP_REQUESTS 8
/* `top` asks for the samples of a node on the screen again after this: nodes keep one each 30 s */
#define CLIENT_TOP_SAMPLE_MS 10000
/* the same of its devices, which change with its hardware alone */
#define CLIENT_TOP_DEVICES_MS 60000
/* details of nodes and of jobs that are kept, of some 1 KB each: those of some hundred screens */
#define CLIENT_TOP_KNOWN 4000
/* samples that are older than this say nothing of now */
#define CLIENT_TOP_SAMPLE_AGE_MS 180000
/* the end of a rank's output that `top` reads: more lines than a terminal has */
#define CLIENT_TOP_OUTPUT_BYTES (16 * KIB)
/* an escape key is told from the keys that begin with one: terminals send those at once */
#define CLIENT_TOP_ESCAPE_MS 50
/* tasks of an array that `logs` shows: 10 s of requests; and those that it follows at once, each with a
 * connection */
#define CLIENT_ARRAY_TASKS 10000
#define CLIENT_ARRAY_FEEDS 64
/* runs of an experiment that `ps --sort` reads for the metrics of tasks: 50 requests */
#define CLIENT_METRIC_RUNS 10000
/* how long to wait for the last event after the end of the output */
#define CLIENT_FOLLOW_END_MS 2000
/* what a command that gpuctl runs for itself beside a rank may print: the stacks of a thousand threads */
#define CLIENT_COLLECT_BYTES (4 * MIB)
/* ranks that it runs beside at once: half of the streams that a job may have (LIMIT_ATTEMPT_STREAMS) */
#define CLIENT_COLLECTED 64
/* host blocks of jobs that `ssh-config --write` keeps: some 500 bytes each, read at each start of ssh */
#define CLIENT_SSH_HOSTS 500
/* ~/.ssh/config, which `ssh-config --write` adds a line to */
#define CLIENT_SSH_CONFIG_BYTES (1 * MIB)

#endif
