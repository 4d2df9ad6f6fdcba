/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's own certificate authority, and the certificate that it serves with, in STATE/tls. */
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
    bool made_authority, made_certificate; /* made by this call */
};

/* Whether the state folder has an authority. */
bool tls_exists(const char *state);

/* Reads the existing files and makes missing ones. Renews the server's certificate if it ends soon or lacks
 * one of the names (IPv6 addresses in brackets; the loopback addresses are added). */
bool tls_open(const char *state, const char *const *names, size_t count, int64_t wall_ms, struct tls *ret_tls,
              struct err *err);
void tls_finish(struct tls *tls);

#endif
