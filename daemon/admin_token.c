/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the administrator's token and its file. A token whose file exists is in the database by the time the
 * controller serves. Only the file holds the secret. The API makes all other tokens. */
#include "daemon/admin_token.h"

#include <stdio.h>
#include <string.h>

#include "daemon/backup/backup.h"
#include "daemon/http/auth/auth.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"

static bool has_admin(struct reader *reader, bool *ret_exists, struct err *err)
{
    autorows struct rows rows = reader_tokens(reader, "", ALL_ROWS, err);
    struct token_row row;
    while (!*ret_exists && rows_token(&rows, &row)) {
        *ret_exists = row.role == ROLE_ADMIN;
    }
    return !rows.failed;
}

static bool admin_exists(const char *state, bool *ret_exists, struct err *err)
{
    autofree char *database = xprintf("%s/" BACKUP_DATABASE, state);
    struct reader *reader = reader_open(database, err);
    *ret_exists = false;
    if (reader == NULL) {
        return false;
    }
    bool ok = has_admin(reader, ret_exists, err);
    reader_close(reader);
    return ok;
}

/* Writes the file first, so that after a crash in between both are made anew. */
bool admin_token_make(struct store *store, const char *state, struct err *err)
{
    uint8_t random[TOKEN_RANDOM_BYTES];
    struct token token;
    random_fill(random, sizeof random);
    token_make(random, &token);
    autofree char *path = xprintf("%s/" ADMIN_TOKEN_FILE, state);
    autofree char *line = xprintf("%s\n", token.text);
    if (!file_replace(path, line, strlen(line), 0600, err)) {
        return false;
    }
    struct change change = {
        .kind = CHANGE_TOKEN_INSERT,
        .token = {.id = token.id, .role = ROLE_ADMIN, .owner = "admin", .created_ms = clock_wall_ms()}};
    memcpy(change.token.secret, token.secret, sizeof change.token.secret);
    bool ok = store_begin(store, err) && store_apply(store, &change, 1, err) && store_commit(store, err);
    if (ok) {
        log_info("token make", "role=admin file=%s", path);
    }
    return ok;
}

bool admin_token_first(struct store *store, const char *state, struct err *err)
{
    bool exists;
    return admin_exists(state, &exists, err) && (exists || admin_token_make(store, state, err));
}
