/* SPDX-License-Identifier: Apache-2.0 */
/* Databases as earlier versions of the controller left them. */
#ifndef TESTS_OLD_DATABASE_H
#define TESTS_OLD_DATABASE_H

#include <sqlite3.h>
#include <stdint.h>

/* Makes one of this schema, with some of everything that the first had, and nothing in its log. The file must
 * be empty or not there. Aborts on failure. */
void old_database_make(const char *path, int64_t version);

/* All rows that the first schema had columns for, as text for the caller to free. The same before and after a
 * migration. */
char *old_database_rows(sqlite3 *db);

#endif
