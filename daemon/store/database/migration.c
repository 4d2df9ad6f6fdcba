/* SPDX-License-Identifier: Apache-2.0 */
/* Copies an older database before it is migrated, because a migration cannot be undone: an older program
 * can open the copy. The copy is whole and on disk before anything is changed, also when the start before
 * this one was cut short. schema_version.c has the migrations. */
#include "daemon/store/database/migration.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/store/database/copy.h"
#include "daemon/store/database/schema_version.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

static bool keep(const char *path, const char *folder, int64_t version, struct err *err)
{
    autofree char *arriving = xprintf("%s/arriving.db", folder);
    autofree char *kept = xprintf("%s/before-schema-%" PRId64 ".db", folder, schema_newest());
    if (!file_make_directories(folder, 0700, err)) {
        return false;
    }
    unlink(arriving);
    if (!copy_database(path, arriving, NULL, err)) {
        return err->code != ERR_DAMAGED && err_hint(err,
                                                    "it has schema version %" PRId64
                                                    " and is copied before it is migrated: make room in %s",
                                                    version, folder);
    }
    return (rename(arriving, kept) == 0 || err_errno(err, "cannot rename %s", arriving)) &&
           file_sync_folder(folder, err);
}

bool migration_keep(sqlite3 *db, const char *path, struct err *err)
{
    int64_t version;
    if (!schema_version(db, &version, err)) {
        return false;
    }
    autofree char *home = file_folder_of(path);
    autofree char *folder = xprintf("%s/backups", home);
    return version == 0 || version == schema_newest() || keep(path, folder, version, err);
}
