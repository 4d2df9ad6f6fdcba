/* SPDX-License-Identifier: Apache-2.0 */
/* The index of job ids: runs of job_ids, which grow as jobs are submitted. */
#ifndef STORE_JOB_INDEX_H
#define STORE_JOB_INDEX_H

#include <stdbool.h>

#include "proto/base/err.h"

struct store;

/* Writes as many rows of the index as the submissions of the open transaction pay for. */
bool job_index_advance(struct store *store, struct err *err);

#endif
