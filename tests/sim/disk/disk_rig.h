/* SPDX-License-Identifier: Apache-2.0 */
/* A disk under test with a database on it. Any error fails the test. */
#ifndef SIM_DISK_RIG_H
#define SIM_DISK_RIG_H

#include <check.h>
#include <sqlite3.h>

#include "tests/sim/disk/disk.h"

extern struct disk *disk; /* the default VFS, called "disk" */

void rig_begin(void);
void rig_end(void);
void rig_renew(uint64_t seed); /* replaces it by a fresh one */

/* The database /db; closing it makes no checkpoint. */
sqlite3 *open_database(void);
sqlite3 *open_log(void); /* with a write-ahead log, full syncs and a table t */

int run(sqlite3 *db, const char *sql);
void must(sqlite3 *db, const char *sql);
/* The single number that the query returns; -1: an error. */
int64_t number(sqlite3 *db, const char *sql);
/* The number of rows in t; checks the database for damage first. */
int64_t rows(sqlite3 *db);
extern const char insert[]; /* inserts a row into t */

/* A file opened without SQLite. */
sqlite3_file *open_file(const char *name);
void close_file(sqlite3_file *file);
void fill(sqlite3_file *file, uint8_t byte, int size, int64_t offset); /* at most 4,096 bytes */

Suite *disk_power_suite(void);

#endif
