/* SPDX-License-Identifier: Apache-2.0 */
/* The copy of a database that is about to be migrated. */
#ifndef STORE_MIGRATION_H
#define STORE_MIGRATION_H

#include <sqlite3.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* Before schema_migrate: copies a database of an older schema to backups/before-schema-N.db beside it, where
 * N is the newest version. One that is empty, or of the newest version, is left as it is. */
bool migration_keep(sqlite3 *db, const char *path, struct err *err);

#endif
