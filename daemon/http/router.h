/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the API, and the checks that all routes share: token, role, size, decoding. */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include <microhttpd.h>

#include "daemon/http/request/route.h"

/* All routes, ended by one whose path is NULL. */
extern const struct route routes[];

/* The measures of all routes, and behind them those of requests that have none. The caller frees them. */
struct route_measures *router_measures(void);

/* Called by the HTTP library: first with the head of a request, then with each piece of its body, then once
 * more for its reply. */
enum MHD_Result router_call(void *server, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *data, size_t *size,
                            void **slot);

#endif
