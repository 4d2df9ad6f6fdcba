/* SPDX-License-Identifier: Apache-2.0 */
/* Row changes: what a step wants to be written, as plain values. The core makes them, the store applies them,
 * nobody interprets them. Strings are borrowed from the step that carries the change. */
#ifndef CORE_MODEL_CHANGE_H
#define CORE_MODEL_CHANGE_H

#include "daemon/core/model/rows.h"

enum change_kind {
    CHANGE_JOB_INSERT, /* birth and life */
    CHANGE_JOB_UPDATE, /* life */
    CHANGE_ARRAY_PUT,  /* of a job that was inserted */
    CHANGE_EVENT_INSERT,
    CHANGE_DEPENDENCY_INSERT,
    CHANGE_ATTEMPT_INSERT,
    CHANGE_ATTEMPT_UPDATE, /* its key, and the columns with the role LIFE */
    CHANGE_MEMBER_INSERT,
    CHANGE_MEMBER_UPDATE, /* likewise */
    CHANGE_RANK_PUT,
    CHANGE_RESULT_PUT,
    CHANGE_NODE_PUT,
    CHANGE_NODE_DELETE, /* node.name; tokens that are bound to it are revoked */
    CHANGE_REPLY_INSERT,
    CHANGE_TOKEN_INSERT,  /* of a login: older ones of token.subject that have ended go */
    CHANGE_TOKEN_REVOKE,  /* token.id */
    CHANGE_TOKEN_END,     /* token.id ends at expires_ms */
    CHANGE_TOKEN_USE,     /* token.id and used_ms */
    CHANGE_TOKENS_RETIRE, /* those bound to token.node but token.id are revoked */
    CHANGE_JOIN_INSERT,   /* those that expired long ago go */
    CHANGE_JOIN_USE,      /* id, node and token of join */
    CHANGE_BLOB_PUT,      /* of a hash that is there already, only created_ms changes */
    CHANGE_BLOB_DELETE,   /* blob.hash, unless something uses it, or it is younger than blob.created_ms */
    CHANGE_USE_PUT,       /* the upload of its owner is named now, and goes */
    CHANGE_UPLOAD_PUT,
    CHANGE_UPLOADS_TRIM,  /* upload.at_ms: RETENTION_STEP_BLOBS of those up to then */
    CHANGE_JOB_DELETE,    /* job.life.key: the job is gone at once, its history is left to removals */
    CHANGE_REMOVAL_PIECE, /* removal.job_key: RETENTION_PIECE_ROWS rows of each table; the removal with the
                             last */
    CHANGE_REPLIES_AGE,   /* reply.at_ms: for how long the controller has run since the last one */
    CHANGE_REPLIES_TRIM,  /* reply.key: forgotten first answers up to this key */
    CHANGE_SHRINK,        /* pages: at most so many free ones go from the file of the database */
    CHANGE_HISTORY_PUT,
    CHANGE_USAGE_PUT,
    CHANGE_USAGE_DELETE, /* project and owner of usage; there need not be such a row */
    CHANGE_HOUR_ADD,     /* what is not its key is added to what is there */
    CHANGE_HOURS_TRIM,   /* hour.hour_ms: the rows of the oldest hour, unless it began after that */
    CHANGE_LIMITS_PUT,
    CHANGE_LIMITS_DELETE, /* kind and name of limits; of a project, with its secrets */
    CHANGE_WINDOW_INSERT,
    CHANGE_WINDOW_DELETE, /* window.id */
    CHANGE_LOST_PUT,      /* beyond LIMIT_LOST_ROWS nothing is kept */
    CHANGE_WEBHOOK_PUT,
    CHANGE_WEBHOOK_DELETE, /* webhook.id, with its deliveries */
    CHANGE_SECRET_PUT,
    CHANGE_SECRET_SEAL,   /* of one that is there still */
    CHANGE_SECRET_DELETE, /* owner, project and name; there need not be one */
    CHANGE_SCHEDULE_INSERT,
    CHANGE_SCHEDULE_UPDATE, /* its key, and the columns with the role LIFE; one that is gone stays so */
    CHANGE_SCHEDULE_RUN,    /* the columns of the last run; next_ms, unless it is 0; paused, if it has paused
                               itself */
    CHANGE_SCHEDULE_DELETE, /* schedule.id, with what it uses; there need not be one */
    CHANGE_SCHEDULE_USE_PUT,
    CHANGE_DELIVERY_INSERT,
    CHANGE_DELIVERY_UPDATE,    /* life; one that retention has removed stays so */
    CHANGE_DELIVERIES_GIVE_UP, /* the pending ones of delivery.webhook up to delivery.key, for its error */
    CHANGE_AUDIT_INSERT,       /* seq and hash are the store's */
    CHANGE_AUDIT_TRIM,         /* RETENTION_STEP_BLOBS of the oldest, up to audit.at_ms, and those before the
                                  newest audit.seq */
    CHANGE_DELIVERIES_TRIM,    /* delivery.created_ms: RETENTION_STEP_BLOBS of those up to then that do not
                                  wait */
};

struct change {
    enum change_kind kind;
    union {
        struct job_row job;
        int64_t pages;
#define CHANGE_ROW(table, row, ...) struct row##_row row;
        ROW_TABLES(CHANGE_ROW)
#undef CHANGE_ROW
    };
};

#endif
