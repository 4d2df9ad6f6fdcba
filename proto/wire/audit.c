/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes a row of the audit. The store does it when it writes a row, clients when they verify. */
#include "proto/wire/audit.h"

#include <string.h>

#include "proto/base/text/text.h"

void audit_hash(const uint8_t before[HASH_BYTES], const struct audit_view *view, uint8_t out[HASH_BYTES])
{
    const char *const texts[] = {view->owner, role_text(view->role), view->token, view->address, view->method,
                                 view->path,  view->subject,         view->code,  view->detail};
    autotext struct text all = {0};
    text_append_bytes(&all, (const char *)before, HASH_BYTES);
    text_printf(&all, "%lld%c%lld%c%lld%c", (long long)view->seq, '\0', (long long)view->at_ms, '\0',
                (long long)view->status, '\0');
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *value = texts[i] != NULL ? texts[i] : "";
        text_append_bytes(&all, value, strlen(value) + 1);
    }
    hash_bytes(all.bytes, all.length, out);
}
