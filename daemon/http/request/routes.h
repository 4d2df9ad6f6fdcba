/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the API, and their handlers, which lie in one file a resource. */
#ifndef HTTP_ROUTES_H
#define HTTP_ROUTES_H

#include "daemon/http/request/route.h"

/* The most frequent come first: they are tried in this order. struct route explains the columns. PLAIN has
 * no body, SEND a JSON body and no query, OTHER all columns. */
#define ROUTES(PLAIN, SEND, OTHER)                                                                           \
    SEND(POST, "/v1/jobs", USER, JSON, LIMIT_SUBMIT_BYTES, true, jobs_submit, 0, "Submit a job")             \
    SEND(POST, "/v1/jobs:batch", USER, LIST, LIMIT_BATCH_BYTES, true, batches_submit, 0, "Submit many jobs") \
    SEND(POST, "/v1/agent/report", NODE, JSON, LIMIT_REPORT_BYTES, false, agents_report, 0,                  \
         "Report what became of an order")                                                                   \
    SEND(POST, "/v1/agent/poll", NODE, JSON, LIMIT_JSON_BYTES, false, agents_poll, 0, "Wait for orders")     \
    SEND(POST, "/v1/agent/beat", NODE, JSON, LIMIT_REPORT_BYTES, false, agents_heartbeat, 0,                 \
         "Show that a node is alive")                                                                        \
    SEND(POST, "/v1/agent/register", NODE, JSON, LIMIT_REPORT_BYTES, false, agents_register, 0,              \
         "Register a node")                                                                                  \
    SEND(POST, "/v1/agent/leave", NODE, JSON, LIMIT_JSON_BYTES, false, nodes_leave, 0,                       \
         "Say that a node's agent is about to end")                                                          \
    SEND(POST, "/v1/agent/staging", NODE, JSON, LIMIT_JSON_BYTES, false, agents_staging, 0,                  \
         "Report what a node prepares")                                                                      \
    SEND(POST, "/v1/agent/journal", NODE, JSON, LIMIT_JSON_BYTES, false, lost_tell, 0,                       \
         "Tell a restored controller what a node has run")                                                   \
    OTHER(POST, "/v1/agent/logs", NODE, BYTES, LIMIT_LOG_CHUNK_BYTES, false,                                 \
          "node epoch rank stream offset", logs_upload, 0, NULL, "Send bytes of a stream")                   \
    OTHER(POST, "/v1/agent/checkpoints", NODE, BYTES, LIMIT_CHECKPOINT_MANIFEST_BYTES, false,                \
          "node epoch kind number gap", checkpoints_take_manifest, 0, NULL, "Store a checkpoint")            \
    PLAIN(GET, "/v1/agent/checkpoints", NODE, "node epoch", checkpoints_give_manifest, 0,                    \
          "Fetch the checkpoint that an attempt begins with")                                                \
    OTHER(POST, "/v1/agent/checkpoints/pieces", NODE, BYTES, LIMIT_CHECKPOINT_PIECE_BYTES, false,            \
          "node epoch sha256", checkpoints_take_piece, 0, NULL, "Store a piece of a checkpoint")             \
    PLAIN(GET, "/v1/agent/checkpoints/pieces", NODE, "node epoch sha256 redirect", checkpoints_give_piece,   \
          0, "Fetch a piece of a checkpoint")                                                                \
    PLAIN(GET, "/v1/jobs/{id}", VIEWER, "wait seq", jobs_show, 0, "Show one job")                            \
    PLAIN(GET, "/v1/jobs", VIEWER, "state name project owner label node id_prefix array since limit cursor", \
          jobs_list, 0, "List jobs")                                                                         \
    SEND(POST, "/v1/jobs/{id}/cancel", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, amend_ask, INPUT_CANCEL, \
         "Cancel a job")                                                                                     \
    SEND(POST, "/v1/jobs/{id}/streams", USER, JSON, LIMIT_JSON_BYTES, false, streams_make, 0,                \
         "Ask for a stream into a running job")                                                              \
    PLAIN(GET, "/v1/streams/{id}", USER, NULL, streams_join, 0, "Join a stream into a running job")          \
    PLAIN(GET, "/v1/agent/streams/{id}", NODE, NULL, streams_join_node, 0,                                   \
          "Join a stream into a job on the node")                                                            \
    PLAIN(DELETE, "/v1/jobs/{id}", USER, NULL, jobs_remove, 0, "Remove a job that has ended")                \
    PLAIN(GET, "/v1/jobs/{id}/explanation", VIEWER, NULL, explain_job, ASK_EXPLAIN,                          \
          "Say why a job waits and when it will start")                                                      \
    SEND(POST, "/v1/plan", USER, JSON, LIMIT_SUBMIT_BYTES, false, explain_plan, 0,                           \
         "Say when a job would start if it were submitted")                                                  \
    PLAIN(GET, "/v1/jobs/{id}/preemption", VIEWER, NULL, explain_job, ASK_REHEARSE,                          \
          "Say which jobs would have to go for one that waits")                                              \
    SEND(POST, "/v1/jobs/{id}/preemption", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, preempt_job, 0,      \
         "Have a job give back its GPUs and wait again")                                                     \
    SEND(PATCH, "/v1/jobs/{id}", USER, JSON, LIMIT_JSON_BYTES, true, amend_change, 0, "Change a live job")   \
    SEND(POST, "/v1/jobs/{id}/retry", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, jobs_retry, 0,            \
         "Submit a job that has ended again")                                                                \
    SEND(POST, "/v1/jobs/{id}/clone", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, jobs_clone, 0,            \
         "Submit a job with the spec of another and some changes")                                           \
    SEND(POST, "/v1/jobs/{id}/hold", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, amend_ask, INPUT_HOLD,     \
         "Keep a waiting job back")                                                                          \
    SEND(POST, "/v1/jobs/{id}/release", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, amend_ask,              \
         INPUT_RELEASE, "Let a held job wait again")                                                         \
    PLAIN(GET, "/v1/jobs/{id}/events", VIEWER, "after limit", events_show, 0,                                \
          "Show or follow the history of a job")                                                             \
    PLAIN(GET, "/v1/jobs/{id}/attempts", VIEWER, "cursor", attempts_list, 0, "List the attempts of a job")   \
    PLAIN(GET, "/v1/jobs/{id}/function", VIEWER, NULL, jobs_function, 0, "Fetch the function of a job")      \
    PLAIN(GET, "/v1/jobs/{id}/timing", VIEWER, NULL, timing_show, 0,                                         \
          "Show where the time of a job's start went")                                                       \
    PLAIN(GET, "/v1/jobs/{id}/results", VIEWER, "attempt after limit bytes", results_list, 0,                \
          "List the results of a job")                                                                       \
    PLAIN(GET, "/v1/jobs/{id}/logs", VIEWER, "rank stream attempt since tail follow", logs_show, 0,          \
          "Show or follow the output of a job")                                                              \
    PLAIN(GET, "/v1/jobs/{id}/logs/search", VIEWER,                                                          \
          "q regex case errors rank stream attempt since limit cursor", log_searches_show, 0,                \
          "Search the output of a job")                                                                      \
    PLAIN(GET, "/v1/jobs/{id}/files", VIEWER, "attempt limit cursor", files_list, 0,                         \
          "List the files that the ranks of a job kept")                                                     \
    PLAIN(GET, "/v1/jobs/{id}/files/content", VIEWER, "path attempt", files_show, 0,                         \
          "Fetch a file that a rank kept")                                                                   \
    PLAIN(GET, "/v1/jobs/{id}/checkpoint", VIEWER, NULL, checkpoints_show, 0,                                \
          "Show the last complete checkpoint of a job")                                                      \
    PLAIN(GET, "/v1/jobs/{id}/metrics", VIEWER, "attempt rank name limit cursor", metrics_show, 0,           \
          "Show or follow the metrics of a job")                                                             \
    PLAIN(GET, "/v1/jobs/{id}/runs", VIEWER, NULL, mlflow_runs_list, 0,                                      \
          "List the runs that a job tracks with")                                                            \
    OTHER(PUT, "/v1/blobs/{sha256}", USER_OR_NODE, STREAM, LIMIT_BLOB_BYTES, false, NULL, blobs_put, 0,      \
          &blobs_sink, "Store bytes under their hash")                                                       \
    PLAIN(GET, "/v1/blobs/{sha256}", VIEWER_OR_NODE, "redirect", blobs_get, 0, "Fetch bytes by their hash")  \
    PLAIN(GET, "/v1/overview", VIEWER, NULL, overview_show, 0, "Show the cluster at a glance")               \
    PLAIN(GET, "/v1/queue", VIEWER, "pool project owner limit", queue_show, 0, "Show who is next, and why")  \
    SEND(POST, "/v1/simulations", VIEWER, JSON, LIMIT_JSON_BYTES, false, simulations_make, 0,                \
         "Say what other policies would have meant")                                                         \
    PLAIN(GET, "/v1/usage", VIEWER, "since until step by project owner", usage_show, 0,                      \
          "Show who used what")                                                                              \
    PLAIN(GET, "/v1/gpus", VIEWER, "node pool gpu_type state owner limit cursor", gpus_list, 0,              \
          "List GPUs with what they do and who holds them")                                                  \
    PLAIN(GET, "/v1/nodes", VIEWER, "limit cursor", nodes_list, 0, "List nodes")                             \
    PLAIN(GET, "/v1/nodes/{name}", VIEWER, NULL, nodes_show, 0, "Show one node")                             \
    PLAIN(GET, "/v1/nodes/{name}/samples", VIEWER, "since until", samples_show, 0,                           \
          "Show what a node used in the last day")                                                           \
    PLAIN(DELETE, "/v1/nodes/{name}", OPERATOR, "force", nodes_remove, 0, "Forget a node")                   \
    SEND(POST, "/v1/nodes/{name}/drain", OPERATOR, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, nodes_order,       \
         NODE_ACTION_DRAIN, "Give a node no new work")                                                       \
    SEND(POST, "/v1/nodes/{name}/resume", OPERATOR, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, nodes_order,      \
         NODE_ACTION_RESUME, "Give a drained node work again")                                               \
    SEND(POST, "/v1/nodes/{name}/fence", OPERATOR, JSON, LIMIT_JSON_BYTES, true, nodes_order,                \
         NODE_ACTION_FENCE, "Declare a node dead")                                                           \
    PLAIN(GET, "/v1/accounts", VIEWER, "cursor", accounts_list, 0, "List projects and users")                \
    PLAIN(GET, "/v1/accounts/projects/{name}", VIEWER, NULL, accounts_show, ACCOUNT_PROJECT,                 \
          "Show one project")                                                                                \
    SEND(PUT, "/v1/accounts/projects/{name}", ADMIN, JSON, LIMIT_JSON_BYTES, false, accounts_put,            \
         ACCOUNT_PROJECT, "Set the limits of a project")                                                     \
    PLAIN(DELETE, "/v1/accounts/projects/{name}", ADMIN, "force", accounts_unset, ACCOUNT_PROJECT,           \
          "Take the limits of a project away")                                                               \
    PLAIN(GET, "/v1/accounts/users/{name}", VIEWER, NULL, accounts_show, ACCOUNT_USER, "Show one user")      \
    SEND(PUT, "/v1/accounts/users/{name}", ADMIN, JSON, LIMIT_JSON_BYTES, false, accounts_put, ACCOUNT_USER, \
         "Set the limits of a user")                                                                         \
    PLAIN(DELETE, "/v1/accounts/users/{name}", ADMIN, "force", accounts_unset, ACCOUNT_USER,                 \
          "Take the limits of a user away")                                                                  \
    PLAIN(GET, "/v1/pools", VIEWER, NULL, pools_list, 0, "List pools")                                       \
    SEND(PUT, "/v1/pools/{name}", ADMIN, JSON, LIMIT_JSON_BYTES, false, accounts_put, ACCOUNT_POOL,          \
         "Say whether a reserved pool lends, and which nodes a pool takes")                                  \
    SEND(POST, "/v1/nodes/{name}/expire", OPERATOR, JSON, LIMIT_JSON_BYTES, true, nodes_expire, 0,           \
         "Say when a node goes away")                                                                        \
    PLAIN(GET, "/v1/windows", VIEWER, NULL, windows_list, 0, "List maintenance windows")                     \
    SEND(POST, "/v1/windows", OPERATOR, JSON, LIMIT_JSON_BYTES, true, windows_make, 0,                       \
         "Make a maintenance window")                                                                        \
    PLAIN(DELETE, "/v1/windows/{id}", OPERATOR, NULL, windows_remove, 0, "Remove a maintenance window")      \
    SEND(POST, "/v1/nodes/join-tokens", OPERATOR, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, joins_make, 0,     \
         "Make a token that a node joins with")                                                              \
    SEND(POST, "/v1/agent/join", OPEN, JSON, LIMIT_JSON_BYTES, false, joins_join, 0,                         \
         "Trade a join token for a token of the node's own")                                                 \
    SEND(POST, "/v1/agent/token", NODE, JSON, LIMIT_JSON_BYTES, false, agents_renew_token, 0,                \
         "Get a new token of the node's own")                                                                \
    PLAIN(GET, "/v1/ca", OPEN, NULL, joins_authority, 0,                                                     \
          "Fetch the certificate of the controller's authority")                                             \
    PLAIN(GET, "/v1/events", VIEWER, NULL, events_follow_all, 0, "Follow the events of all jobs")            \
    PLAIN(GET, "/v1/webhooks", VIEWER, "limit cursor", webhooks_list, 0, "List webhooks")                    \
    SEND(POST, "/v1/webhooks", USER, JSON, LIMIT_JSON_BYTES, false, webhooks_make, 0, "Make a webhook")      \
    PLAIN(GET, "/v1/webhooks/{id}", VIEWER, NULL, webhooks_show, 0, "Show one webhook")                      \
    SEND(PATCH, "/v1/webhooks/{id}", USER, JSON, LIMIT_JSON_BYTES, false, webhooks_change, 0,                \
         "Change a webhook")                                                                                 \
    PLAIN(DELETE, "/v1/webhooks/{id}", USER, NULL, webhooks_remove, 0, "Remove a webhook")                   \
    SEND(POST, "/v1/webhooks/{id}/test", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, webhooks_test, 0,     \
         "Send a webhook a test")                                                                            \
    PLAIN(GET, "/v1/webhooks/{id}/deliveries", VIEWER, "state limit cursor", deliveries_list, 0,             \
          "List what a webhook was told")                                                                    \
    SEND(POST, "/v1/webhooks/{id}/replay", USER, JSON, LIMIT_JSON_BYTES, false, deliveries_replay, 0,        \
         "Send deliveries again")                                                                            \
    PLAIN(GET, "/v1/schedules", VIEWER, "limit cursor", schedules_list, 0, "List schedules")                 \
    SEND(POST, "/v1/schedules", USER, JSON, LIMIT_SUBMIT_BYTES, false, schedules_make, 0,                    \
         "Have jobs submitted by the clock")                                                                 \
    PLAIN(GET, "/v1/schedules/{id}", VIEWER, NULL, schedules_show, 0, "Show one schedule")                   \
    SEND(PATCH, "/v1/schedules/{id}", USER, JSON, LIMIT_JSON_BYTES, false, schedules_change, 0,              \
         "Change, pause or resume a schedule")                                                               \
    PLAIN(DELETE, "/v1/schedules/{id}", USER, NULL, schedules_remove, 0, "Remove a schedule")                \
    SEND(POST, "/v1/schedules/{id}/run", USER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, true, schedules_run, 0,      \
         "Submit a job of a schedule now")                                                                   \
    PLAIN(GET, "/v1/secrets", USER, "project", secrets_list, 0, "List secrets, without their values")        \
    SEND(PUT, "/v1/secrets/{name}", USER, JSON, LIMIT_SECRET_BODY_BYTES, false, secrets_put, 0,              \
         "Set a secret")                                                                                     \
    PLAIN(DELETE, "/v1/secrets/{name}", USER, "project", secrets_remove, 0, "Remove a secret")               \
    SEND(POST, "/v1/secrets/rotate", ADMIN, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, secrets_rotate, 0,       \
         "Seal all secrets under a new key")                                                                 \
    PLAIN(GET, "/v1/tokens", ADMIN, "limit cursor", tokens_list, 0, "List tokens")                           \
    SEND(POST, "/v1/tokens", ADMIN, JSON, LIMIT_JSON_BYTES, false, tokens_make, 0, "Make a token")           \
    SEND(POST, "/v1/tokens/{id}/revoke", ADMIN, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, tokens_revoke, 0,    \
         "Revoke a token")                                                                                   \
    PLAIN(GET, "/v1/audit", ADMIN, "owner path since limit cursor", audit_list, 0, "List who did what")      \
    PLAIN(GET, "/v1/backups", ADMIN, NULL, backups_list, 0, "List backups")                                  \
    SEND(POST, "/v1/backups", ADMIN, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, backups_make, 0,                \
         "Make a backup now")                                                                                \
    SEND(POST, "/v1/retention", ADMIN, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, retention_ask, 0,             \
         "Remove what is old, or say what would go")                                                         \
    PLAIN(GET, "/v1/object-store", ADMIN, NULL, object_store_show, 0,                                        \
          "Say where the bytes of users are, and what waits to be moved")                                    \
    SEND(POST, "/v1/object-store", ADMIN, JSON, LIMIT_JSON_BYTES, false, object_store_move, 0,               \
         "Move the bytes of users to the object store, or back to files")                                    \
    PLAIN(GET, "/v1/lost", OPERATOR, "cursor", lost_list, 0,                                                 \
          "List attempts that a restored controller does not know")                                          \
    SEND(POST, "/v1/shutdown", ADMIN, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, meta_shutdown, 0,              \
         "End the controller")                                                                               \
    SEND(POST, "/api/2.0/mlflow/{+call}", TRACKING, JSON_OR_EMPTY, LIMIT_MLFLOW_BYTES, false, mlflow_call,   \
         0, "Call a method of MLflow's tracking API")                                                        \
    PLAIN(GET, "/api/2.0/mlflow/{+call}", TRACKING, "*", mlflow_call, 0,                                     \
          "Ask a method of MLflow's tracking API")                                                           \
    SEND(PATCH, "/api/2.0/mlflow/{+call}", TRACKING, JSON_OR_EMPTY, LIMIT_MLFLOW_BYTES, false, mlflow_call,  \
         0, "Change something by a method of MLflow's tracking API")                                         \
    OTHER(DELETE, "/api/2.0/mlflow/{+call}", TRACKING, JSON_OR_EMPTY, LIMIT_MLFLOW_BYTES, false, "*",        \
          mlflow_call, 0, NULL, "Delete something by a method of MLflow's tracking API")                     \
    OTHER(PUT, GATE_FILES "{+path}", TRACKING_CHANGE, STREAM, LIMIT_BLOB_BYTES, false, "*",                  \
          mlflow_artifacts_put, 0, &mlflow_artifacts_sink, "Store an artifact")                              \
    PLAIN(GET, GATE_FILES "{+path}", TRACKING, "*", mlflow_artifacts_get, 0, "Fetch an artifact")            \
    PLAIN(DELETE, GATE_FILES "{+path}", TRACKING_CHANGE, "*", mlflow_artifacts_delete, 0,                    \
          "Delete an artifact or a folder of them")                                                          \
    PLAIN(GET, "/api/2.0/mlflow-artifacts/artifacts", TRACKING, "*", mlflow_artifacts_list, 0,               \
          "List a folder of artifacts")                                                                      \
    PLAIN(GET, "/api/3.0/mlflow/server-info", OPEN, "*", mlflow_server_info, 0,                              \
          "Tell MLflow's client what the server can do")                                                     \
    PLAIN(GET, "/health", OPEN, NULL, mlflow_health, 0, "Say that the server serves, as MLflow's does")      \
    PLAIN(GET, "/healthz", OPEN, NULL, meta_health, 0, "Say that the server serves")                         \
    PLAIN(GET, "/metrics", MONITOR, NULL, monitor_show, 0, "Show metrics of the controller for Prometheus")  \
    PLAIN(GET, "/version", ANY, NULL, meta_version, 0, "Show the version")                                   \
    PLAIN(GET, "/v1/openapi.yaml", ANY, NULL, meta_contract, 0, "Show this contract")                        \
    SEND(POST, "/v1/session", OPEN, JSON, LIMIT_JSON_BYTES, false, sessions_make, 0, "Begin a session")      \
    PLAIN(GET, "/v1/session", VIEWER, NULL, sessions_show, 0, "Show who is signed in")                       \
    PLAIN(DELETE, "/v1/session", VIEWER, NULL, sessions_end, 0, "End a session")                             \
    SEND(POST, "/v1/session/codes", VIEWER, JSON_OR_EMPTY, LIMIT_JSON_BYTES, false, sessions_make_code, 0,   \
         "Make a code that signs a browser in, once")                                                        \
    PLAIN(GET, "/v1/login", OPEN, NULL, logins_show, 0, "Say where people log in")                           \
    SEND(POST, "/v1/login", OPEN, JSON, LIMIT_JSON_BYTES, false, logins_make, 0,                             \
         "Trade an ID token of the identity provider for a token")                                           \
    PLAIN(DELETE, "/v1/login", VIEWER, "token", logins_end, 0, "End the token that is used")                 \
    PLAIN(GET, "/", OPEN, "*", web_page, 0, "Show the web page")                                             \
    PLAIN(GET, "/web/{name}", OPEN, NULL, web_show, 0, "Fetch a file of the web page")

#define PLAIN(method, path, access, query, handle, what, summary)                           HANDLER(handle)
#define SEND(method, path, access, body, limit, keyed, handle, what, summary)               HANDLER(handle)
#define OTHER(method, path, access, body, limit, keyed, query, handle, what, sink, summary) HANDLER(handle)
#define HANDLER(handle)                                                                     bool handle(struct request *request, struct err *err);
ROUTES(PLAIN, SEND, OTHER)
#undef PLAIN
#undef SEND
#undef OTHER
#undef HANDLER
extern const struct body_sink blobs_sink, mlflow_artifacts_sink;

#endif
