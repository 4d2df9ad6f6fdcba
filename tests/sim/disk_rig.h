/* SPDX-License-Identifier: Apache-2.0 */
/* A disk under test with a database on it. Whatever goes wrong fails the test. */
#ifndef SIM_DISK_RIG_H
#define SIM_DISK_RIG_H

#include <check.h>
#include <sqlite3.h>

#include "tests/sim/disk.h"

extern struct disk *disk; /* the default VFS, called "disk" */

void rig_begin(void);
void rig_end(void);
void rig_renew(uint64_t seed); /* a fresh one */

/* The database /db, whose closing checkpoints nothing. */
sqlite3 *open_database(void);
sqlite3 *open_log(void); /* with a write-ahead log, full syncs and a table t */

int run(sqlite3 *db, const char *sql);
void must(sqlite3 *db, const char *sql);
/* The one number that it gives; -1: an error. */
int64_t number(sqlite3 *db, const char *sql);
/* Of t, in a database without damage. */
int64_t rows(sqlite3 *db);
extern const char insert[]; /* a row into t */

/* A file without SQLite. */
sqlite3_file *open_file(const char *name);
void close_file(sqlite3_file *file);
void fill(sqlite3_file *file, uint8_t byte, int size, int64_t offset); /* at most 4,096 */

Suite *disk_power_suite(void);

#endif
