/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that secrets are sealed under: a file of the state folder, beside the database and in no backup. A
 * sealed value can be opened only with its key, as the secret of the same owner, project and name. */
#ifndef VAULT_VAULT_H
#define VAULT_VAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

#define VAULT_FILE "secrets.key"

struct vault;

/* Whose value it is: the texts are bound to what is sealed. */
struct vault_label {
    const char *owner, *project, *name;
};

/* Reads the keys, if the file exists. NULL: it holds something else. */
struct vault *vault_open(const char *path, struct err *err);
/* Takes NULL. */
void vault_close(struct vault *vault);

/* Seals a value under the newest key; the first seal makes the file and its key. The caller frees
 * *ret_sealed. */
bool vault_seal(struct vault *vault, const struct vault_label *label, const void *value, size_t size,
                uint8_t **ret_sealed, size_t *ret_size, struct err *err);

/* How many bytes a value has that is sealed in so many; 0: none is. */
size_t vault_value_size(size_t sealed_size);

/* Opens a value. ERR_DAMAGED: its key is not in the file, or the bytes or the label are others than were
 * sealed. The caller hands *ret_value to vault_wipe. */
bool vault_unseal(const struct vault *vault, const struct vault_label *label, const uint8_t *sealed,
                  size_t sealed_size, uint8_t **ret_value, size_t *ret_size, struct err *err);

/* Overwrites the bytes and frees them; takes NULL. */
void vault_wipe(void *bytes, size_t size);

/* Adds a new key, which is the newest from then on; the file keeps the older ones. ERR_CONFLICT at
 * LIMIT_SECRET_KEYS. */
bool vault_renew(struct vault *vault, struct err *err);
/* Whether it is sealed under the newest key, and whether its key is there at all. */
bool vault_is_newest(const struct vault *vault, const uint8_t *sealed, size_t sealed_size);
bool vault_has_key(const struct vault *vault, const uint8_t *sealed, size_t sealed_size);
/* Removes all keys but the newest: nothing may be sealed under them any more. */
bool vault_drop_older(struct vault *vault, struct err *err);

#endif
