/* SPDX-License-Identifier: Apache-2.0 */
/* Carries secrets from the order to the shim, in memory alone: neither the launch file nor a log has a value.
 * The agent keeps values only to mask what ranks leave as their errors. After a restart the order comes
 * again, with the values. */
#include "agent/attempt/secrets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/common/launch_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/spec/jobspec.h"
#include "proto/spec/jobspec_parts.h"

static void wipe_text(struct text *text)
{
    if (text->bytes != NULL) {
        explicit_bzero(text->bytes, text->room);
    }
    text_finish(text);
}

/* Strings of jansson are ours to change as long as their length stays. */
static void wipe_values(const json_t *values)
{
    const json_t *value;
    size_t i;
    json_array_foreach (values, i, value) {
        if (json_is_string(value)) {
            explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
        }
    }
}

static void set_problem(struct attempt_secrets *secrets, const struct job_secret *secret, const char *what)
{
    if (secrets->problem == NULL) {
        secrets->problem = xprintf("secret %s %s", secret->name, what);
    }
}

static void pack_pair(struct text *packed, const char *key, const char *variable, const char *value)
{
    text_append_bytes(packed, key, strlen(key) + 1);
    text_append(packed, variable);
    text_append(packed, "=");
    text_append_bytes(packed, value, strlen(value) + 1);
}

static void pack(struct attempt_secrets *secrets, const struct job_secret *secret, const char *base64,
                 const uint8_t *bytes, size_t length, const char *run)
{
    if (secret->file) {
        autofree char *path = xprintf("%s/" SHIM_SECRETS_FOLDER "/%s", run, secret->variable);
        pack_pair(&secrets->packed, "secret_file", secret->variable, base64);
        pack_pair(&secrets->packed, "env", secret->variable, path);
    } else if (memchr(bytes, '\0', length) != NULL) {
        set_problem(secrets, secret, "has a NUL byte, which no variable can hold: ask for it with :file");
    } else {
        autofree char *value = xstrndup((const char *)bytes, length);
        pack_pair(&secrets->packed, "secret", secret->variable, value);
        explicit_bzero(value, length);
    }
}

static void take_one(struct attempt_secrets *secrets, const struct job_secret *secret, const char *base64,
                     const char *run)
{
    uint8_t *bytes;
    size_t length;
    if (base64 == NULL) {
        set_problem(secrets, secret, "is not there for this job any more: set it, then submit the job again");
    } else if (!text_from_base64(base64, strlen(base64), &bytes, &length)) {
        set_problem(secrets, secret, "did not come as base64");
    } else {
        mask_add(secrets->mask, bytes, length);
        pack(secrets, secret, base64, bytes, length, run);
        explicit_bzero(bytes, length);
        free(bytes);
    }
}

void attempt_secrets_take(struct attempt_secrets *secrets, struct order *order, const char *run)
{
    json_t *named = json_object_get(order->spec, "secrets");
    struct job_secret *list = NULL;
    size_t count = 0;
    if (json_array_size(named) == 0 || order->secrets == NULL) {
        return;
    }
    bool known = secrets->mask != NULL && !mask_is_unknown(secrets->mask);
    if (!known && jobspec_decode_secrets(named, &list, &count, NULL)) {
        mask_destroy(secrets->mask);
        secrets->mask = mask_create();
        secrets->count = count;
        for (size_t i = 0; i < count; i++) {
            take_one(secrets, &list[i], json_string_value(json_array_get(order->secrets, i)), run);
        }
    }
    wipe_values(order->secrets);
    order->secrets = NULL;
    free(list);
}

void attempt_secrets_adopt(struct attempt_secrets *secrets, size_t count)
{
    secrets->count = count;
    secrets->mask = count > 0 ? mask_create_unknown() : NULL;
}

int attempt_secrets_give(struct attempt_secrets *secrets, struct err *err)
{
    autoclose int file = memfd_create("secrets", MFD_CLOEXEC);
    if (file < 0 || !file_write_all(file, secrets->packed.bytes, secrets->packed.length) ||
        lseek(file, 0, SEEK_SET) != 0) {
        err_errno(err, "cannot hand over secrets");
        return -1;
    }
    wipe_text(&secrets->packed);
    return give_fd(&file);
}

void attempt_secrets_finish(struct attempt_secrets *secrets)
{
    wipe_text(&secrets->packed);
    mask_destroy(secrets->mask);
    free(secrets->problem);
    *secrets = (struct attempt_secrets){0};
}
