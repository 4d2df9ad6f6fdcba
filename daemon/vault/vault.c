/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the keys, and seals with AES-256-GCM. A sealed value is a version, the id of its key, a nonce, the
 * encrypted bytes and a tag. The tag covers the version, the id and the label, too: a row that was changed,
 * or moved to another name, does not open. The file has a key a line, the newest first, and is replaced as a
 * whole. Which values are sealed anew, and when, is the caller's part. */
#include "daemon/vault/vault.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define VERSION       1
#define KEY_BYTES     32
#define KEY_ID_BYTES  8
#define NONCE_BYTES   12 /* drawn: under one key 2^32 values have the same one with a chance of 2^-33 */
#define TAG_BYTES     16
#define HEAD_BYTES    (1 + KEY_ID_BYTES) /* version and key id */
#define OVERHEAD      (HEAD_BYTES + NONCE_BYTES + TAG_BYTES)
#define LINE_BYTES    (2 * KEY_ID_BYTES + 1 + 2 * KEY_BYTES + 1)
#define FILE_BYTES    (LIMIT_SECRET_KEYS * LINE_BYTES)
#define ID_HEX_LENGTH (2 * KEY_ID_BYTES)

struct key {
    uint8_t id[KEY_ID_BYTES];
    uint8_t bytes[KEY_BYTES];
};

struct vault {
    char *path;
    struct key keys[LIMIT_SECRET_KEYS]; /* the newest first */
    size_t count;
};

void vault_wipe(void *bytes, size_t size)
{
    if (bytes != NULL) {
        explicit_bzero(bytes, size);
        free(bytes);
    }
}

/* --- the file ------------------------------------------------------------------------------------------- */

/* ID-IN-HEX KEY-IN-HEX */
static bool read_line(char *line, struct key *key)
{
    if (strlen(line) != LINE_BYTES - 1 || line[ID_HEX_LENGTH] != ' ') {
        return false;
    }
    line[ID_HEX_LENGTH] = '\0';
    return text_from_hex(line, key->id, KEY_ID_BYTES) &&
           text_from_hex(line + ID_HEX_LENGTH + 1, key->bytes, KEY_BYTES);
}

static bool read_keys(struct vault *vault, char *text)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL && *line != '\0'; vault->count++) {
        if (vault->count == LIMIT_SECRET_KEYS || !read_line(line, &vault->keys[vault->count])) {
            return false;
        }
    }
    return text == NULL || *text == '\0';
}

static bool read_file(struct vault *vault, struct err *err)
{
    char *text = NULL;
    size_t length;
    if (access(vault->path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    if (!file_read(vault->path, FILE_BYTES, &text, &length, err)) {
        return false;
    }
    bool read = read_keys(vault, text) && vault->count > 0;
    vault_wipe(text, length);
    if (!read) {
        err_set(err, ERR_DAMAGED, "%s does not hold keys of secrets", vault->path);
        return err_hint(err, "put your copy of it back, or move it away: then no secret can be opened");
    }
    return true;
}

static bool write_file(const struct vault *vault, size_t count, struct err *err)
{
    char text[FILE_BYTES + 1], *at = text;
    for (size_t i = 0; i < count; i++) {
        text_to_hex(vault->keys[i].id, KEY_ID_BYTES, at);
        at[ID_HEX_LENGTH] = ' ';
        text_to_hex(vault->keys[i].bytes, KEY_BYTES, at + ID_HEX_LENGTH + 1);
        at[LINE_BYTES - 1] = '\n';
        at += LINE_BYTES;
    }
    bool written = file_replace(vault->path, text, (size_t)(at - text), 0600, err);
    explicit_bzero(text, sizeof text);
    return written;
}

struct vault *vault_open(const char *path, struct err *err)
{
    struct vault *vault = xzalloc(sizeof *vault);
    vault->path = xstrdup(path);
    if (!read_file(vault, err)) {
        vault_close(vault);
        return NULL;
    }
    return vault;
}

void vault_close(struct vault *vault)
{
    if (vault != NULL) {
        free(vault->path);
        vault_wipe(vault, sizeof *vault);
    }
}

bool vault_renew(struct vault *vault, struct err *err)
{
    if (vault->count == LIMIT_SECRET_KEYS) {
        err_set(err, ERR_CONFLICT, "there are %zu keys of secrets, of which the older ones are in use",
                vault->count);
        return err_hint(err, "see the log for what keeps secrets from being sealed under the newest");
    }
    memmove(&vault->keys[1], &vault->keys[0], vault->count * sizeof vault->keys[0]);
    random_fill(&vault->keys[0], sizeof vault->keys[0]);
    vault->count++;
    if (write_file(vault, vault->count, err)) {
        return true;
    }
    vault->count--;
    memmove(&vault->keys[0], &vault->keys[1], vault->count * sizeof vault->keys[0]);
    return false;
}

bool vault_drop_older(struct vault *vault, struct err *err)
{
    if (vault->count < 2) {
        return true;
    }
    if (!write_file(vault, 1, err)) {
        return false;
    }
    explicit_bzero(&vault->keys[1], (vault->count - 1) * sizeof vault->keys[0]);
    vault->count = 1;
    return true;
}

/* --- sealing -------------------------------------------------------------------------------------------- */

size_t vault_value_size(size_t sealed_size)
{
    return sealed_size > OVERHEAD ? sealed_size - OVERHEAD : 0;
}

/* The head, then the texts with a NUL behind each: none of them holds one. */
static void append_bound(struct text *out, const uint8_t *head, const struct vault_label *label)
{
    text_append_bytes(out, (const char *)head, HEAD_BYTES);
    text_append_bytes(out, label->owner, strlen(label->owner) + 1);
    text_append_bytes(out, label->project, strlen(label->project) + 1);
    text_append_bytes(out, label->name, strlen(label->name) + 1);
}

static gnutls_aead_cipher_hd_t begin(const struct key *key, struct err *err)
{
    gnutls_aead_cipher_hd_t cipher = NULL;
    const gnutls_datum_t datum = {.data = (unsigned char *)(uintptr_t)key->bytes, .size = KEY_BYTES};
    int result = gnutls_aead_cipher_init(&cipher, GNUTLS_CIPHER_AES_256_GCM, &datum);
    if (result < 0) {
        err_set(err, ERR_INTERNAL, "there is no AES-256-GCM: %s", gnutls_strerror(result));
    }
    return cipher;
}

bool vault_seal(struct vault *vault, const struct vault_label *label, const void *value, size_t size,
                uint8_t **ret_sealed, size_t *ret_size, struct err *err)
{
    if (vault->count == 0 && !vault_renew(vault, err)) {
        return false;
    }
    const struct key *key = &vault->keys[0];
    gnutls_aead_cipher_hd_t cipher = begin(key, err);
    if (cipher == NULL) {
        return false;
    }
    autotext struct text bound = {0};
    autofree uint8_t *sealed = xalloc(size + OVERHEAD);
    uint8_t *nonce = sealed + HEAD_BYTES;
    size_t room = size + TAG_BYTES;
    sealed[0] = VERSION;
    memcpy(sealed + 1, key->id, KEY_ID_BYTES);
    random_fill(nonce, NONCE_BYTES);
    append_bound(&bound, sealed, label);
    int result = gnutls_aead_cipher_encrypt(cipher, nonce, NONCE_BYTES, bound.bytes, bound.length, TAG_BYTES,
                                            value, size, nonce + NONCE_BYTES, &room);
    gnutls_aead_cipher_deinit(cipher);
    if (result < 0 || room != size + TAG_BYTES) {
        return err_set(err, ERR_INTERNAL, "a secret cannot be sealed: %s", gnutls_strerror(result));
    }
    *ret_sealed = give(sealed);
    *ret_size = size + OVERHEAD;
    return true;
}

static const struct key *find_key(const struct vault *vault, const uint8_t *sealed, size_t sealed_size)
{
    for (size_t i = 0; i < vault->count && sealed_size >= OVERHEAD && sealed[0] == VERSION; i++) {
        if (memcmp(vault->keys[i].id, sealed + 1, KEY_ID_BYTES) == 0) {
            return &vault->keys[i];
        }
    }
    return NULL;
}

bool vault_is_newest(const struct vault *vault, const uint8_t *sealed, size_t sealed_size)
{
    return vault->count > 0 && find_key(vault, sealed, sealed_size) == &vault->keys[0];
}

bool vault_has_key(const struct vault *vault, const uint8_t *sealed, size_t sealed_size)
{
    return find_key(vault, sealed, sealed_size) != NULL;
}

bool vault_unseal(const struct vault *vault, const struct vault_label *label, const uint8_t *sealed,
                  size_t sealed_size, uint8_t **ret_value, size_t *ret_size, struct err *err)
{
    const struct key *key = find_key(vault, sealed, sealed_size);
    if (key == NULL) {
        return err_set(err, ERR_DAMAGED, "the key that it is sealed under is not in %s", vault->path);
    }
    gnutls_aead_cipher_hd_t cipher = begin(key, err);
    if (cipher == NULL) {
        return false;
    }
    autotext struct text bound = {0};
    const uint8_t *nonce = sealed + HEAD_BYTES;
    const size_t size = sealed_size - OVERHEAD;
    size_t room = size;
    uint8_t *value = xalloc(size + 1);
    append_bound(&bound, sealed, label);
    int result = gnutls_aead_cipher_decrypt(cipher, nonce, NONCE_BYTES, bound.bytes, bound.length, TAG_BYTES,
                                            nonce + NONCE_BYTES, size + TAG_BYTES, value, &room);
    gnutls_aead_cipher_deinit(cipher);
    if (result < 0 || room != size) {
        vault_wipe(value, size);
        return err_set(err, ERR_DAMAGED, "it was changed since it was sealed");
    }
    *ret_value = value;
    *ret_size = size;
    return true;
}
