/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects to the object store: large bytes then go past the controller. */
#include "daemon/http/objects/redirect.h"

#include <stdlib.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"

bool redirect_is_wanted(const struct request *request)
{
    int64_t wanted = 0;
    struct err ignored;
    return request->server->objects != NULL &&
           query_int(request->query, "redirect", 0, 1, &wanted, &ignored) && wanted == 1;
}

bool redirect_reply(struct request *request, char *link)
{
    if (link == NULL) {
        return false;
    }
    request_reply_literal(request, 307, "{}");
    request_header(request, "Location", link);
    request_header(request, "Cache-Control", "no-store");
    free(link);
    return true;
}
