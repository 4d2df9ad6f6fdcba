/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's own certificate authority and the certificate that it serves with, in STATE/tls. */
#ifndef DAEMON_TLS_H
#define DAEMON_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

#define TLS_FOLDER "tls"

/* Texts in PEM, owned. */
struct tls {
    char *authority;   /* the certificate that signs */
    char *certificate; /* of the server */
    char *key;
    bool made_authority, made_certificate; /* by this call */
};

/* Whether the state folder has an authority. */
bool tls_exists(const char *state);

/* Reads what is there and makes what is missing; the server's certificate anew when it ends before long or
 * lacks one of the names (addresses of IPv6 in brackets; those of the loopback are added). */
bool tls_open(const char *state, const char *const *names, size_t count, int64_t wall_ms, struct tls *ret_tls,
              struct err *err);
void tls_finish(struct tls *tls);
#define autotls __attribute__((cleanup(tls_finish)))

#endif
