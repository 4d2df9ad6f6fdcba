/* SPDX-License-Identifier: Apache-2.0 */
/* Sends blobs to the controller. It promises to send nothing that the controller has already. */
#include "client/cli/transport/blob.h"

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define CHUNK_BYTES (256 * KIB)

bool blob_hash_file(FILE *file, const char *name, char ret_hex[HASH_HEX + 1], size_t *ret_length,
                    struct err *err)
{
    autofree char *chunk = xalloc(CHUNK_BYTES);
    struct hash *hash = hash_create();
    size_t got, length = 0;
    rewind(file);
    while ((got = fread(chunk, 1, CHUNK_BYTES, file)) > 0) {
        hash_update(hash, chunk, got);
        length += got;
    }
    uint8_t digest[HASH_BYTES];
    hash_finish(hash, digest);
    text_to_hex(digest, HASH_BYTES, ret_hex);
    *ret_length = length;
    return !ferror(file) || err_errno(err, "cannot read %s", name);
}

bool blob_is_there(struct api *api, const char hex[HASH_HEX + 1])
{
    autofree char *path = xprintf("/v1/blobs/%s", hex);
    return api_send(api, &(struct request){.method = "HEAD", .path = path, .head = true}, NULL, NULL);
}

static bool put(struct api *api, const char *hex, struct request *request, struct err *err)
{
    autofree char *path = xprintf("/v1/blobs/%s", hex);
    request->method = "PUT";
    request->path = path;
    request->content_type = "application/octet-stream";
    request->timeout_ms = -1;
    request->retry = true;
    return api == NULL || blob_is_there(api, hex) || api_send(api, request, NULL, err);
}

bool blob_put_file(struct api *api, const char hex[HASH_HEX + 1], FILE *file, size_t length, struct err *err)
{
    rewind(file);
    return put(api, hex, &(struct request){.upload = file, .length = length}, err);
}

bool blob_put_bytes(struct api *api, const void *bytes, size_t length, char ret_hex[HASH_HEX + 1],
                    struct err *err)
{
    hash_hex(bytes, length, ret_hex);
    return put(api, ret_hex, &(struct request){.body = bytes, .length = length}, err);
}
