/* SPDX-License-Identifier: Apache-2.0 */
/* Adds local files to a job. A file is sent as it was when it was read; only small ones are part of the spec.
 */
#include "client/cli/bundle/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/transport/blob.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "proto/spec/jobspec_parts.h"

bool attach_split(const char *argument, char **ret_local, char **ret_remote, struct err *err)
{
    const char *colon = strrchr(argument, ':');
    size_t length = colon != NULL ? (size_t)(colon - argument) : strlen(argument);
    autofree char *local = xstrndup(argument, length);
    const char *plain = strncmp(local, "./", 2) == 0 ? local + 2 : local;
    const char *remote = colon != NULL ? colon + 1 : jobspec_is_inner_path(plain) ? plain : basename(local);
    if (local[0] == '\0' || remote[0] == '\0') {
        return err_field(err, ERR_USAGE, "file", "write --file LOCAL or --file LOCAL:REMOTE",
                         "--file \"%s\" names no file", argument);
    }
    *ret_remote = xstrdup(remote);
    *ret_local = give(local);
    return true;
}

/* --- contents --- */

/* Puts the content of a small file into the entry: as text if it is text, else as base64. */
static bool set_inline(json_t *entry, const char *local, size_t max, size_t *ret_length, struct err *err)
{
    autofree char *bytes = NULL;
    size_t length;
    if (!file_read(local, max, &bytes, &length, err)) {
        return false;
    }
    *ret_length = length;
    json_t *text = memchr(bytes, '\0', length) == NULL ? json_stringn(bytes, length) : NULL;
    if (text != NULL) {
        json_object_set_new(entry, "text", text);
        return true;
    }
    autofree char *base64 = text_to_base64((const uint8_t *)bytes, length);
    json_object_set_new(entry, "base64", json_string(base64));
    return true;
}

static bool set_blob(struct api *api, json_t *entry, const char *local, struct err *err)
{
    autofclose FILE *file = fopen(local, "re");
    char hex[HASH_HEX + 1];
    size_t length;
    if (file == NULL) {
        return err_errno(err, "cannot open %s", local);
    }
    if (!blob_hash_file(file, local, hex, &length, err) || !blob_put_file(api, hex, file, length, err)) {
        return false;
    }
    json_object_set_new(entry, "blob", json_string(hex));
    return true;
}

/* --- entries --- */

static bool check_file(const char *local, struct stat *ret_status, struct err *err)
{
    if (stat(local, ret_status) != 0) {
        err_errno(err, "cannot send %s", local);
    } else if (!S_ISREG(ret_status->st_mode)) {
        err_set(err, ERR_USAGE, "cannot send %s: it is not a regular file", local);
    } else if (ret_status->st_size > LIMIT_BLOB_BYTES) {
        err_set(err, ERR_TOO_LARGE, "cannot send %s: it is larger than %lld bytes", local,
                (long long)LIMIT_BLOB_BYTES);
    } else {
        return true;
    }
    snprintf(err->field, sizeof err->field, "file");
    return false;
}

/* Puts the content into the entry. *left: bytes that the spec may still hold. */
static bool fill_entry(struct api *api, json_t *entry, const char *local, int64_t *left, struct err *err)
{
    struct stat status;
    if (!check_file(local, &status, err)) {
        return false;
    }
    size_t length = 0;
    bool fits = status.st_size <= *left;
    bool good =
        fits ? set_inline(entry, local, (size_t)*left, &length, err) : set_blob(api, entry, local, err);
    *left -= (int64_t)length;
    if ((status.st_mode & S_IXUSR) != 0 && json_object_get(entry, "executable") == NULL) {
        json_object_set_new(entry, "executable", json_true());
    }
    return good;
}

static json_t *make_entry(struct api *api, const char *argument, int64_t *left, struct err *err)
{
    autofree char *local = NULL;
    autofree char *remote = NULL;
    if (!attach_split(argument, &local, &remote, err)) {
        return NULL;
    }
    autojson json_t *entry = json_pack("{s:s}", "path", remote);
    if (entry == NULL) {
        err_field(err, ERR_USAGE, "file", NULL, "the name %s is not UTF-8", remote);
        return NULL;
    }
    return fill_entry(api, entry, local, left, err) ? give(entry) : NULL;
}

/* Returns how many bytes of files the spec may still hold. */
static int64_t room_left(const json_t *entries)
{
    int64_t left = CLIENT_INLINE_BYTES;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        left -= (int64_t)(json_string_length(json_object_get(entry, "text")) +
                          json_string_length(json_object_get(entry, "base64")));
    }
    return left;
}

bool attach_files(struct api *api, const struct option_list *files, json_t *spec, struct err *err)
{
    if (files->count == 0) {
        return true;
    }
    json_t *entries = json_object_get(spec, "files");
    if (!json_is_array(entries)) {
        entries = json_array();
        json_object_set_new(spec, "files", entries);
    }
    int64_t left = room_left(entries);
    for (size_t i = 0; i < files->count; i++) {
        json_t *entry = make_entry(api, files->items[i], &left, err);
        if (entry == NULL) {
            return false;
        }
        json_array_append_new(entries, entry);
    }
    return true;
}

/* --- entries that were written by hand --- */

static bool fill_source(struct api *api, const char *folder, json_t *entry, int64_t *left, struct err *err)
{
    const char *source = json_string_of(entry, "source");
    if (source == NULL || source[0] == '\0') {
        return err_field(err, ERR_USAGE, "source", NULL, "source must name a local file");
    }
    autofree char *local = source[0] == '/' ? xstrdup(source) : xprintf("%s/%s", folder, source);
    if (json_object_get(entry, "path") == NULL) {
        const char *plain = strncmp(source, "./", 2) == 0 ? source + 2 : source;
        json_object_set_new(entry, "path",
                            json_string(jobspec_is_inner_path(plain) ? plain : basename(source)));
    }
    json_object_del(entry, "source");
    return fill_entry(api, entry, local, left, err);
}

bool attach_sources(struct api *api, const char *folder, json_t *spec, struct err *err)
{
    json_t *entries = json_object_get(spec, "files");
    int64_t left = room_left(entries);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);
        if (json_object_get(entry, "source") == NULL || fill_source(api, folder, entry, &left, err)) {
            continue;
        }
        struct err inner = *err;
        autofree char *field = xprintf("files[%zu].source", i);
        return err_field(err, inner.code, field, inner.hint, "%s: %s", field, inner.text);
    }
    return true;
}
