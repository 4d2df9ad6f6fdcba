/* SPDX-License-Identifier: Apache-2.0 */
/* The write-ahead log of the writer: how large it is, and when it moves into the database. */
#ifndef STORE_WAL_H
#define STORE_WAL_H

#include <stdbool.h>

#include "daemon/store/database/connection.h"

struct wal {
    int pages; /* in the log, as of the last commit */
    int moved; /* of these, in the database as well */
};

/* Counts pages from now on; *wal stays where it is while the connection is open. */
void wal_watch(struct wal *wal, struct connection *connection);

/* Writes the content of the log once more, in place, and syncs it. A sync that failed may have left bytes
 * that programs see and the disk does not have. The next sync would not bring them there, and everything
 * appended behind them would be lost with them. Comes before the first commit of a new writer. */
bool wal_renew(struct connection *connection, struct err *err);

/* Takes the frames from this one on out of the log, which are of a transaction that was never finished: its
 * end would be found behind whatever takes its place. */
bool wal_cut(struct connection *connection, int64_t frame, struct err *err);

/* Makes the file WAL_GROWN_BYTES long where it is shorter, and syncs it. The log must have been written
 * before. */
bool wal_grow(struct connection *connection, struct err *err);

/* Whether the log has every page that the file of the database lacks at its end: only then was the file not
 * cut. It lacks pages while the database grows, until the log moves. A free page that no transaction wrote is
 * in neither, so false means that the pages have to be looked at. Comes after wal_cut. */
bool wal_completes(struct connection *connection, bool *ret_completes, struct err *err);

/* In the place of the header of a log that is over: SQLite takes it for an empty one, and wal_check knows
 * that nothing is missing. It is as long as a header. */
#define WAL_FINISHED "the database has all of this log"

/* Moves all of the log into the database, and ends it with WAL_FINISHED. After the last commit; nothing is
 * done, and nothing lost, where a reader is in the way or something fails. */
void wal_finish(struct connection *connection);

/* As store_checkpoint. */
bool wal_checkpoint(struct wal *wal, struct connection *connection, bool idle, struct err *err);

#endif
