/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller reads of those who want something of it: credentials of requests, URLs of webhooks, and
 * secrets that it has sealed itself. */
#include <curl/curl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/rank_token.h"
#include "daemon/http/auth/session.h"
#include "daemon/notify/target.h"
#include "daemon/vault/vault.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"

#define NOW_MS 1800000000000LL

/* --- credentials ---------------------------------------------------------------------------------------- */

static const uint8_t key[HASH_BYTES] = {1, 2, 3};

/* The token gct_<TOKEN_ID>_<SECRET> of alice; one of a rank is of ATTEMPT. */
#define TOKEN_ID "abcdefgh"
#define SECRET   "0123456789012345678901234567890123456789abc"
#define ATTEMPT  77

static struct auth *people(void)
{
    static struct auth *auth;
    if (auth == NULL) {
        struct token_row row = {.id = TOKEN_ID, .role = ROLE_USER, .owner = "alice", .created_ms = 1};
        hash_bytes(SECRET, strlen(SECRET), row.secret);
        auth = auth_create();
        auth_put(auth, &row);
    }
    return auth;
}

/* Lines: Authorization, Cookie, the proof of a session, a code of a link. Whoever comes through has what
 * alice or the rank has, and no other bytes. */
bool fuzz_credential(const uint8_t *bytes, size_t size)
{
    static struct sessions *sessions;
    static const uint8_t random[SESSION_NONCE_BYTES] = {9};
    struct err err = {0};
    char credential[CREDENTIAL_BYTES], cookie[SESSION_COOKIE_BYTES], proof[HASH_HEX + 1],
        code[SESSION_NONCE_HEX + 1];
    char rank[RANK_TOKEN_BYTES];
    uint64_t attempt_id = ATTEMPT;
    autofree char *authorization = fuzz_line(&bytes, &size), *cookies = fuzz_line(&bytes, &size),
                  *proved = fuzz_line(&bytes, &size), *coded = fuzz_text(bytes, size);
    if (proved == NULL) {
        return false;
    }
    struct auth *auth = people();
    if (sessions == NULL) {
        sessions = sessions_create(key);
    }
    auth_credential(authorization, credential);
    const struct identity *who = auth_check(auth, credential, NOW_MS, &err);
    if (who == NULL) {
        FUZZ_REFUSED(err);
    } else {
        FUZZ_MUST(strcmp(credential, "gct_" TOKEN_ID "_" SECRET) == 0 &&
                  strcmp(identity_owner(who), "alice") == 0);
    }
    rank_token_make(key, ATTEMPT, rank);
    bool is_rank = rank_token_read(key, credential, &attempt_id);
    FUZZ_MUST(is_rank ? strcasecmp(credential, rank) == 0 : strcmp(credential, rank) != 0);
    FUZZ_MUST(attempt_id == ATTEMPT);

    struct session session, found;
    const struct identity *alice = auth_find(auth, TOKEN_ID);
    const struct session_headers headers = {.cookie = cookies, .proof = proved};
    session_begin(alice, NOW_MS, random, &session);
    session_cookie(sessions, &session, cookie);
    session_proof(sessions, &session, proof);
    const struct identity *visitor = session_check(sessions, auth, &headers, NOW_MS, &found, &err);
    if (visitor != NULL) {
        FUZZ_MUST(visitor == alice && sessions_has_cookie(sessions, cookies) &&
                  strstr(cookies, session.token) != NULL);
        FUZZ_MUST(strcasestr(cookies, strrchr(cookie, '.')) != NULL && strcasecmp(proved, proof) == 0);
    } else {
        FUZZ_REFUSED(err);
    }
    FUZZ_MUST(session_code_make(sessions, alice, NOW_MS, random, code, &err));
    const struct identity *guest = session_code_take(sessions, auth, coded, NOW_MS, NOW_MS, &err);
    FUZZ_MUST((guest != NULL) == (strcmp(coded, code) == 0));
    if (guest == NULL) {
        FUZZ_MUST(session_code_take(sessions, auth, code, NOW_MS, NOW_MS, &err) == alice);
    }
    return who != NULL || is_rank || visitor != NULL || guest != NULL;
}

/* --- webhooks ------------------------------------------------------------------------------------------- */

/* As the library that sends to it understands the URL. */
static bool has_user(const char *url)
{
    CURLU *parts = curl_url();
    char *user = NULL;
    bool has = curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
               curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK;
    curl_free(user);
    curl_url_cleanup(parts);
    return has;
}

/* No network is allowed beyond the public ones. What is shown has no password. */
bool fuzz_webhook_url(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    const struct networks networks = {0};
    autofree char *url = fuzz_text(bytes, size);
    autofree char *shown = target_mask(url);
    FUZZ_MUST(strlen(shown) <= strlen(url) + 3);
    if (!target_check(url, &networks, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    const char *host = strstr(url, "://");
    FUZZ_MUST(host != NULL && strncasecmp(url, "http", 4) == 0);
    FUZZ_MUST(!has_user(url) || strncmp(shown + (host - url), "://***@", 7) == 0);
    static const char *const inner[] = {"://127.0.0.1/", "://[::1]/", "://169.254.169.254/", "://10.0.0.1/"};
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        FUZZ_MUST(strncmp(host, inner[i], strlen(inner[i])) != 0);
    }
    return true;
}

/* --- secrets -------------------------------------------------------------------------------------------- */

/* The first byte is the number of lines of the file of keys; behind them is a sealed value. */
bool fuzz_vault(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    const struct vault_label label = {"alice", "", "TOKEN"};
    const uint8_t *begin = bytes + 1;
    if (size == 0) {
        return false;
    }
    size_t lines = bytes[0] % 4, left = size - 1;
    const uint8_t *rest = begin;
    for (size_t i = 0; i < lines; i++) {
        free(fuzz_line(&rest, &left));
    }
    struct vault *vault = vault_open(fuzz_file("secrets.key", begin, (size_t)(rest - begin)), &err);
    if (vault == NULL) {
        FUZZ_REFUSED(err);
        return false;
    }
    uint8_t *value = NULL;
    size_t length = 0;
    bool opened = vault_unseal(vault, &label, rest, left, &value, &length, &err);
    FUZZ_MUST(opened ? vault_has_key(vault, rest, left) && length == vault_value_size(left)
                     : err.text[0] != '\0');
    FUZZ_MUST(!vault_is_newest(vault, rest, left) || vault_has_key(vault, rest, left));
    vault_wipe(value, length);
    vault_close(vault);
    return opened;
}
