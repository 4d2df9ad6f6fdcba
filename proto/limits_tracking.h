/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the tracking store. */
#ifndef PROTO_LIMITS_TRACKING_H
#define PROTO_LIMITS_TRACKING_H

#include "proto/limits.h"

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

#endif
