/* SPDX-License-Identifier: Apache-2.0 */
/* The handle of the store, which its files share. */
#ifndef STORE_HANDLE_H
#define STORE_HANDLE_H

#include "daemon/store/database/connection.h"
#include "daemon/store/gather.h"
#include "daemon/store/scopes.h"
#include "daemon/store/store.h"
#include "daemon/store/database/wal.h"

/* See job_index.c. */
struct job_index {
    int64_t indexed; /* runs of level 0 that were filled */
    int64_t credit;  /* rows that it may write with the next transactions */
    bool merged;     /* no run waits to be merged */
};

struct store {
    struct connection connection;
    struct wal wal;
    struct gather gather;   /* rows of the open transaction that are not inserted yet */
    struct scopes scopes;   /* all replies, those of the open transaction among them */
    int64_t last_reply_key; /* 0: none yet */
    int64_t next_job_key;
    struct job_index job_index;
    int64_t audit_seq;      /* of the last row of the audit; 0: none yet */
    uint8_t audit_hash[32]; /* its hash; zeros: likewise */
    uint32_t incarnation;
    struct store_restored restored;
    int lock;     /* fd of the lock file: one writer in the whole system */
    bool doubted; /* the last controller failed with this database */
};

#endif
