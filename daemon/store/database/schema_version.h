/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the schema that a database has, and the way to the newest one. */
#ifndef STORE_SCHEMA_VERSION_H
#define STORE_SCHEMA_VERSION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* The version of a database, 0 of an empty one, and the newest that there is. */
bool schema_version(sqlite3 *db, int64_t *ret_version, struct err *err);
int64_t schema_newest(void);

/* Whether the pages of a database must have sums: one of ours, and not of an older version. */
bool schema_wants_sums(sqlite3 *db, bool *ret_wants, struct err *err);

/* Refuses a file that is no database of ours or has a newer schema; changes nothing. */
bool schema_check(sqlite3 *db, struct err *err);

/* Whether a database can give pages back to the disk. */
bool schema_can_shrink(sqlite3 *db, bool *ret_can, struct err *err);

/* Writes a database anew that cannot give pages back to the disk, as earlier programs made it, unless that
 * would take long or the disk has no room for it. After schema_migrate. */
bool schema_make_shrinkable(sqlite3 *db, struct err *err);

/* Brings a database that schema_check let pass to the newest version, one transaction a version; an empty one
 * in one transaction. */
bool schema_migrate(sqlite3 *db, struct err *err);
/* The same, but no further than this version: for tests, which need databases of all of them. */
bool schema_migrate_to(sqlite3 *db, int64_t last, struct err *err);

#endif
