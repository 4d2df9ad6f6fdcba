/* SPDX-License-Identifier: Apache-2.0 */
/* Runs gpuctld's actions on a state folder. Backup and check run beside a serving controller; restore runs
 * only when none serves. Each prints its result on stdout. daemon/backup implements them. */
#include "daemon/upkeep.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/admin_token.h"
#include "daemon/backup/inspect.h"
#include "daemon/backup/restore.h"
#include "daemon/home.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

bool upkeep_wanted(const struct config *config)
{
    return config->backup_to != NULL || config->restore_from != NULL || config->check != NULL;
}

static bool make_backup(const struct config *config, struct err *err)
{
    struct backup backup;
    if (!backup_make(config->state, config->backup_to, NULL, &backup, err)) {
        return false;
    }
    printf("%s: %" PRId64 " bytes in %" PRId64 " ms\n", config->backup_to, backup.bytes, backup.took_ms);
    return true;
}

/* A new machine has no administrator's token file, and the database has only the hashes of the old tokens. */
static bool make_token_if_none(const char *state, struct err *err)
{
    autofree char *token = xprintf("%s/" ADMIN_TOKEN_FILE, state);
    if (access(token, F_OK) == 0) {
        return true;
    }
    autofree char *database = xprintf("%s/" BACKUP_DATABASE, state);
    struct store *store = store_open(database, err);
    bool ok = store != NULL && admin_token_make(store, state, err);
    store_close(store);
    if (ok) {
        printf("%s: a new token of an administrator\n", token);
    }
    return ok;
}

static bool restore(const struct config *config, struct err *err)
{
    autofree char *replaced = NULL;
    autoclose int lock = home_lock(config->state, err);
    if (lock < 0 || !restore_run(config->restore_from, config->state, &replaced, err)) {
        return false;
    }
    printf("%s: put back %s; what was there is in %s\n", config->state, config->restore_from, replaced);
    return make_token_if_none(config->state, err);
}

/* A backup on the shelf uses the payloads of its state folder. */
static bool check(const struct config *config, struct err *err)
{
    autofree char *blobs = xprintf("%s/blobs", config->state);
    int64_t findings;
    bool beside = access(blobs, F_OK) == 0;
    if (!inspect(config->check, beside ? blobs : NULL, stdout, &findings, err)) {
        return false;
    }
    if (findings == 0) {
        return true;
    }
    err_set(err, ERR_IO, "%s has %" PRId64 " findings", config->check, findings);
    return err_hint(err, "see them above; gpuctl admin restore puts a backup in its place");
}

bool upkeep_run(const struct config *config, struct err *err)
{
    if (config->backup_to != NULL) {
        return make_backup(config, err);
    }
    return config->restore_from != NULL ? restore(config, err) : check(config, err);
}
