/* SPDX-License-Identifier: Apache-2.0 */
/* Answers a Range header, for bytes that lie in a file. */
#include "daemon/http/kept/range.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/http/request/head.h"
#include "daemon/http/request/request.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

bool range_reply(struct request *request, const char *content_type, int fd, int64_t offset, int64_t size)
{
    int64_t first, last;
    autofree char *content_range = NULL;
    if (request->headers.range == NULL || !head_range(request->headers.range, size, &first, &last)) {
        return false;
    }
    if (first >= size || last < first) {
        close(fd);
        request_fail_with(request, ERR_RANGE, "it has %lld bytes", (long long)size);
        content_range = xprintf("bytes */%lld", (long long)size);
    } else {
        request_reply_file(request, 206, content_type, fd, (uint64_t)(offset + first),
                           (uint64_t)(last - first + 1));
        content_range = xprintf("bytes %lld-%lld/%lld", (long long)first, (long long)last, (long long)size);
    }
    request_header(request, "Content-Range", content_range);
    return true;
}
