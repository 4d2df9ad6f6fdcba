/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a copy of all tokens in memory, with SHA-256 hashes only. A guess learns nothing: an unknown id
 * costs the same hash and the same comparison as a known one and gets the same words, and hashes are
 * compared in constant time. A token has 256 random bits, so a fast hash will do. */
#include "daemon/http/auth/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"

struct identity {
    char id[TOKEN_ID_LENGTH + 1];
    struct principal principal; /* its texts are owned */
    char *node;                 /* that it is bound to; or NULL */
    char *subject;              /* of the login that made it; or NULL */
    uint8_t secret[HASH_BYTES];
    int64_t expires_ms; /* 0: never */
    bool revoked;
    int64_t used_ms; /* as noted last; 0: never */
    UT_hash_handle hh;
};

struct auth {
    struct identity *identities; /* by id */
};

/* --- tokens --------------------------------------------------------------------------------------------- */

void token_make(const uint8_t random[TOKEN_RANDOM_BYTES], struct token *ret_token)
{
    uint8_t id_bytes[10] = {0};
    memcpy(id_bytes, random, 5); /* 40 bits are 8 characters */
    char id[ID_LENGTH + 1];
    text_id_from_bytes(id_bytes, id);
    memcpy(ret_token->id, id, TOKEN_ID_LENGTH);
    ret_token->id[TOKEN_ID_LENGTH] = '\0';
    char secret[TOKEN_SECRET_LENGTH + 1];
    token_secret_make(random + 5, secret);
    hash_bytes(secret, TOKEN_SECRET_LENGTH, ret_token->secret);
    snprintf(ret_token->text, sizeof ret_token->text, TOKEN_PREFIX "%s_%s", ret_token->id, secret);
}

/* --- those that are known ------------------------------------------------------------------------------- */

const char *identity_id(const struct identity *who)
{
    return who->id;
}

int64_t identity_expires_ms(const struct identity *who)
{
    return who->expires_ms;
}

const char *identity_owner(const struct identity *who)
{
    return who->principal.name;
}

const struct principal *identity_principal(const struct identity *who)
{
    return &who->principal;
}

bool identity_logged_in(const struct identity *who)
{
    return who->subject != NULL;
}

enum role identity_role(const struct identity *who)
{
    return who->principal.role;
}

bool identity_is_admin(const struct identity *who)
{
    return who->principal.role == ROLE_ADMIN;
}

const char *identity_node(const struct identity *who)
{
    return who->node;
}

bool identity_acts_for(const struct identity *who, const char *node, struct err *err)
{
    if (who->node == NULL || strcmp(who->node, node) == 0) {
        return true;
    }
    return err_field(err, ERR_FORBIDDEN, "node",
                     "have that node join with gpuagent join, for a token of its own",
                     "the token is bound to node %s, and does not speak for %.64s", who->node, node);
}

bool identity_stands(const struct identity *who, int64_t wall_ms)
{
    return !who->revoked && (who->expires_ms == 0 || wall_ms < who->expires_ms);
}

struct auth *auth_create(void)
{
    return xzalloc(sizeof(struct auth));
}

void auth_destroy(struct auth *auth)
{
    if (auth == NULL) {
        return;
    }
    struct identity *identity, *next;
    HASH_ITER (hh, auth->identities, identity, next) {
        HASH_DEL(auth->identities, identity);
        principal_finish(&identity->principal);
        free(identity->node);
        free(identity->subject);
        free(identity);
    }
    free(auth);
}

void auth_put(struct auth *auth, const struct token_row *row)
{
    if (strlen(row->id) != TOKEN_ID_LENGTH) {
        return;
    }
    struct identity *identity;
    HASH_FIND(hh, auth->identities, row->id, TOKEN_ID_LENGTH, identity);
    if (identity == NULL) {
        identity = xzalloc(sizeof *identity);
        memcpy(identity->id, row->id, TOKEN_ID_LENGTH);
        principal_init(&identity->principal, row->owner, row->role, row->project, row->groups);
        identity->node = row->node != NULL ? xstrdup(row->node) : NULL;
        identity->subject = row->subject != NULL ? xstrdup(row->subject) : NULL;
        memcpy(identity->secret, row->secret, sizeof identity->secret);
        HASH_ADD(hh, auth->identities, id, TOKEN_ID_LENGTH, identity);
    }
    identity->expires_ms = row->expires_ms;
    identity->revoked |= row->revoked; /* a revocation may be on its way to the store */
    identity->used_ms = row->used_ms > identity->used_ms ? row->used_ms : identity->used_ms;
}

const struct identity *auth_find(const struct auth *auth, const char *id)
{
    struct identity *identity;
    HASH_FIND(hh, auth->identities, id, TOKEN_ID_LENGTH, identity);
    return identity;
}

void auth_end(struct auth *auth, const char *id, int64_t wall_ms)
{
    struct identity *identity;
    HASH_FIND(hh, auth->identities, id, TOKEN_ID_LENGTH, identity);
    if (identity != NULL) {
        identity->expires_ms = wall_ms;
    }
}

bool auth_is_of_another(const struct auth *auth, const char *owner, const char *subject)
{
    for (const struct identity *one = auth->identities; one != NULL; one = one->hh.next) {
        if (one->subject != NULL && !one->revoked && strcmp(one->principal.name, owner) == 0 &&
            strcmp(one->subject, subject) != 0) {
            return true;
        }
    }
    return false;
}

bool auth_serves_another(const struct auth *auth, const char *owner, const char *project)
{
    for (const struct identity *one = auth->identities; one != NULL; one = one->hh.next) {
        const struct principal *principal = &one->principal;
        if (principal->project != NULL && strcmp(principal->name, owner) == 0 &&
            strcmp(principal->project, project) != 0) {
            return true;
        }
    }
    return false;
}

void auth_retire(struct auth *auth, const char *node, const char *id)
{
    for (struct identity *one = auth->identities; one != NULL; one = one->hh.next) {
        one->revoked |= one->node != NULL && strcmp(one->node, node) == 0 && strcmp(one->id, id) != 0;
    }
}

bool auth_use(struct auth *auth, const char *id, int64_t wall_ms, bool *ret_first)
{
    struct identity *identity;
    HASH_FIND(hh, auth->identities, id, TOKEN_ID_LENGTH, identity);
    bool due = identity != NULL && wall_ms - identity->used_ms >= TOKEN_USE_MS;
    *ret_first = due && identity->used_ms == 0;
    if (due) {
        identity->used_ms = wall_ms;
    }
    return due;
}

const struct identity *auth_of_owner(const struct auth *auth, const char *owner, int64_t login_ms,
                                     int64_t wall_ms)
{
    const struct identity *token = NULL, *login = NULL;
    for (const struct identity *one = auth->identities; one != NULL; one = one->hh.next) {
        if (one->node != NULL || strcmp(one->principal.name, owner) != 0) {
            continue;
        }
        if (one->subject != NULL) {
            login = login == NULL || one->expires_ms > login->expires_ms ? one : login;
        } else if (identity_stands(one, wall_ms) &&
                   (token == NULL || one->principal.role > token->principal.role)) {
            token = one;
        }
    }
    if (login != NULL && (login->revoked || wall_ms - login->expires_ms > login_ms)) {
        login = NULL;
    }
    if (login != NULL && (token == NULL || login->principal.role >= token->principal.role)) {
        token = login;
    }
    return token != NULL && token->principal.role >= ROLE_USER ? token : NULL;
}

bool auth_has_node(const struct auth *auth, const char *node, int64_t wall_ms)
{
    for (const struct identity *one = auth->identities; one != NULL; one = one->hh.next) {
        if (one->node != NULL && strcmp(one->node, node) == 0 && identity_stands(one, wall_ms)) {
            return true;
        }
    }
    return false;
}

bool auth_load(struct auth *auth, struct reader *reader, struct err *err)
{
    autorows struct rows rows = reader_tokens(reader, "", ALL_ROWS, err);
    struct token_row row;
    while (rows_token(&rows, &row)) {
        auth_put(auth, &row);
    }
    return !rows.failed;
}

/* The text behind the scheme and its space; NULL: it is another scheme. */
static const char *after_scheme(const char *authorization, const char *scheme)
{
    size_t length = strlen(scheme);
    bool same = strncasecmp(authorization, scheme, length) == 0;
    return same ? authorization + length : NULL;
}

/* The password of "name:password" in base64. */
static void read_basic(const char *base64, char out[CREDENTIAL_BYTES])
{
    autofree uint8_t *bytes = NULL;
    size_t length;
    if (!text_from_base64(base64, strlen(base64), &bytes, &length)) {
        return;
    }
    autofree char *pair = xstrndup((const char *)bytes, length);
    const char *colon = strchr(pair, ':');
    if (colon != NULL && strlen(colon + 1) < CREDENTIAL_BYTES) {
        memcpy(out, colon + 1, strlen(colon + 1) + 1);
    }
}

void auth_credential(const char *authorization, char out[CREDENTIAL_BYTES])
{
    out[0] = '\0';
    if (authorization == NULL) {
        return;
    }
    const char *bearer = after_scheme(authorization, "Bearer ");
    const char *basic = after_scheme(authorization, "Basic ");
    if (bearer != NULL && strlen(bearer) < CREDENTIAL_BYTES) {
        memcpy(out, bearer, strlen(bearer) + 1);
    } else if (basic != NULL) {
        read_basic(basic, out);
    }
}

const struct identity *auth_ranks(void)
{
    static char name[] = "job";
    static const struct identity ranks = {.principal = {.name = name, .role = ROLE_NONE}};
    return &ranks;
}

bool auth_refuse(struct err *err)
{
    return err_set(err, ERR_UNAUTHENTICATED, "the token is not valid: unknown, revoked or expired");
}

const struct identity *auth_check(struct auth *auth, const char *credential, int64_t wall_ms, struct err *err)
{
    static const uint8_t nobody[HASH_BYTES];
    const char *token = token_after_prefix(credential, TOKEN_PREFIX);
    if (token == NULL) {
        err_set(err, ERR_UNAUTHENTICATED, "the request carries no token");
        err_hint(err, "send the header Authorization: Bearer gct_...");
        return NULL;
    }
    struct identity *identity;
    HASH_FIND(hh, auth->identities, token, TOKEN_ID_LENGTH, identity);
    uint8_t secret[HASH_BYTES];
    hash_bytes(token + TOKEN_ID_LENGTH + 1, TOKEN_SECRET_LENGTH, secret);
    bool equal = hash_equal(secret, identity != NULL ? identity->secret : nobody);
    if (identity == NULL || !equal || !identity_stands(identity, wall_ms)) {
        auth_refuse(err);
        return NULL;
    }
    return identity;
}
