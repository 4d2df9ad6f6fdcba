/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and reads the certificate authority of a cluster and the controller's certificate, by GnuTLS. The
 * authority is made once and never replaced; a crash leaves only whole files; only the owner can read the
 * keys. The HTTP library serves with them. */
#include "daemon/tls.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define PEM_BYTES    (64 * 1024)
#define SERIAL_BYTES 16
#define KEY_ID_BYTES 20 /* SHA-1 of the key, used only as a name */

static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};

static void deinit_key(gnutls_x509_privkey_t *key)
{
    if (*key != NULL) {
        gnutls_x509_privkey_deinit(*key);
    }
}
static void deinit_certificate(gnutls_x509_crt_t *certificate)
{
    if (*certificate != NULL) {
        gnutls_x509_crt_deinit(*certificate);
    }
}
#define autokey         __attribute__((cleanup(deinit_key)))
#define autocertificate __attribute__((cleanup(deinit_certificate)))

/* These calls fail only for lack of memory, or because the library is unusable. */
static bool ok(int code, struct err *err)
{
    return code >= 0 || err_set(err, ERR_IO, "the TLS library fails: %s", gnutls_strerror(code));
}

static bool damaged(const char *path, struct err *err)
{
    err_set(err, ERR_IO, "%s is not what gpuctld has written", path);
    return err_hint(err, "put it back from a copy, or remove it, and the next start makes another");
}

static char *path_of(const char *state, const char *name)
{
    return xprintf("%s/" TLS_FOLDER "/%s", state, name);
}

bool tls_exists(const char *state)
{
    autofree char *path = path_of(state, "ca.pem");
    return access(path, F_OK) == 0;
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static bool make_key(const char *path, gnutls_x509_privkey_t key, struct err *err)
{
    gnutls_datum_t text = {0};
    unsigned bits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
    if (!ok(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, bits, 0), err) ||
        !ok(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), err)) {
        return false;
    }
    bool written = file_replace(path, text.data, text.size, 0600, err);
    explicit_bzero(text.data, text.size);
    gnutls_free(text.data);
    return written;
}

/* The key in the file; makes the file if it does not exist. */
static bool open_key(const char *path, gnutls_x509_privkey_t *ret_key, struct err *err)
{
    autofree char *text = NULL;
    size_t length;
    if (!ok(gnutls_x509_privkey_init(ret_key), err)) {
        return false;
    }
    if (access(path, F_OK) != 0) {
        return make_key(path, *ret_key, err);
    }
    if (!file_read(path, PEM_BYTES, &text, &length, err)) {
        return false;
    }
    const gnutls_datum_t datum = {(unsigned char *)text, (unsigned)length};
    bool sound = gnutls_x509_privkey_import(*ret_key, &datum, GNUTLS_X509_FMT_PEM) >= 0;
    explicit_bzero(text, length);
    return sound || damaged(path, err);
}

/* --- certificates --------------------------------------------------------------------------------------- */

/* The certificate in the file; NULL without an error if the file does not exist. */
static bool read_certificate(const char *path, gnutls_x509_crt_t *ret_certificate, struct err *err)
{
    autofree char *text = NULL;
    size_t length;
    if (access(path, F_OK) != 0) {
        return true;
    }
    if (!file_read(path, PEM_BYTES, &text, &length, err) || !ok(gnutls_x509_crt_init(ret_certificate), err)) {
        return false;
    }
    const gnutls_datum_t datum = {(unsigned char *)text, (unsigned)length};
    return gnutls_x509_crt_import(*ret_certificate, &datum, GNUTLS_X509_FMT_PEM) >= 0 || damaged(path, err);
}

/* Sets the common parts of all our certificates: a random serial, the subject, the validity. */
static bool begin_certificate(const char *name, gnutls_x509_privkey_t key, int64_t wall_ms, int64_t life_s,
                              gnutls_x509_crt_t *ret_certificate, struct err *err)
{
    uint8_t serial[SERIAL_BYTES], id[KEY_ID_BYTES];
    size_t id_size = sizeof id;
    time_t now = (time_t)(wall_ms / 1000);
    random_fill(serial, sizeof serial);
    serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, and of full length */
    if (!ok(gnutls_x509_crt_init(ret_certificate), err)) {
        return false;
    }
    gnutls_x509_crt_t certificate = *ret_certificate;
    return ok(gnutls_x509_crt_set_version(certificate, 3), err) &&
           ok(gnutls_x509_crt_set_serial(certificate, serial, sizeof serial), err) &&
           ok(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                            (unsigned)strlen(name)),
              err) &&
           ok(gnutls_x509_crt_set_activation_time(certificate, now - TLS_BACKDATE_S), err) &&
           ok(gnutls_x509_crt_set_expiration_time(certificate, now + (time_t)life_s), err) &&
           ok(gnutls_x509_crt_set_key(certificate, key), err) &&
           ok(gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA1, id, &id_size), err) &&
           ok(gnutls_x509_crt_set_subject_key_id(certificate, id, id_size), err);
}

static bool write_certificate(const char *path, gnutls_x509_crt_t certificate, struct err *err)
{
    gnutls_datum_t text = {0};
    if (!ok(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text), err)) {
        return false;
    }
    bool written = file_replace(path, text.data, text.size, 0644, err);
    gnutls_free(text.data);
    return written;
}

/* --- the authority -------------------------------------------------------------------------------------- */

static bool make_authority(const char *path, const char *host, gnutls_x509_privkey_t key, int64_t wall_ms,
                           gnutls_x509_crt_t *ret_authority, struct err *err)
{
    autofree char *name = xprintf("gpuctl CA of %.40s", host);
    return begin_certificate(name, key, wall_ms, TLS_AUTHORITY_LIFE_S, ret_authority, err) &&
           ok(gnutls_x509_crt_set_basic_constraints(*ret_authority, 1, 0), err) &&
           ok(gnutls_x509_crt_set_key_usage(*ret_authority, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN),
              err) &&
           ok(gnutls_x509_crt_sign2(*ret_authority, *ret_authority, key, GNUTLS_DIG_SHA256, 0), err) &&
           write_certificate(path, *ret_authority, err);
}

/* --- the server ----------------------------------------------------------------------------------------- */

/* Turns "[::1]" into "::1". */
static char *without_brackets(const char *name)
{
    size_t length = strlen(name);
    bool bracketed = length > 2 && name[0] == '[' && name[length - 1] == ']';
    return bracketed ? xstrndup(name + 1, length - 2) : xstrdup(name);
}

static bool add_name(gnutls_x509_crt_t certificate, const char *bracketed, struct err *err)
{
    autofree char *name = without_brackets(bracketed);
    unsigned char address[16];
    unsigned size = inet_pton(AF_INET, name, address) == 1    ? 4
                    : inet_pton(AF_INET6, name, address) == 1 ? 16
                                                              : 0;
    return size > 0 ? ok(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, address,
                                                              size, GNUTLS_FSAN_APPEND),
                         err)
                    : ok(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, name,
                                                              (unsigned)strlen(name), GNUTLS_FSAN_APPEND),
                         err);
}

static bool has_name(gnutls_x509_crt_t certificate, const char *bracketed)
{
    autofree char *name = without_brackets(bracketed);
    return gnutls_x509_crt_check_hostname(certificate, name) != 0;
}

/* Why the certificate cannot be used; NULL: it can. */
static const char *why_anew(gnutls_x509_crt_t certificate, gnutls_x509_crt_t authority,
                            const char *const *names, size_t count, int64_t wall_ms)
{
    if (certificate == NULL) {
        return "there was none";
    }
    if (gnutls_x509_crt_check_issuer(certificate, authority) == 0) {
        return "another authority";
    }
    if (gnutls_x509_crt_get_expiration_time(certificate) - (time_t)(wall_ms / 1000) < TLS_RENEW_S) {
        return "it ends before long";
    }
    for (size_t i = 0; i < count; i++) {
        if (!has_name(certificate, names[i])) {
            return "a new name";
        }
    }
    return NULL;
}

static bool add_names(gnutls_x509_crt_t certificate, const char *const *names, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!add_name(certificate, names[i], err)) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++) {
        if (!add_name(certificate, loopback[i], err)) {
            return false;
        }
    }
    return true;
}

static bool sign_server(const char *path, gnutls_x509_crt_t authority, gnutls_x509_privkey_t authority_key,
                        gnutls_x509_privkey_t key, const char *const *names, size_t count, int64_t wall_ms,
                        struct err *err)
{
    autocertificate gnutls_x509_crt_t certificate = NULL;
    uint8_t id[KEY_ID_BYTES];
    size_t id_size = sizeof id;
    return begin_certificate("gpuctld", key, wall_ms, TLS_SERVER_LIFE_S, &certificate, err) &&
           add_names(certificate, names, count, err) &&
           ok(gnutls_x509_crt_set_basic_constraints(certificate, 0, -1), err) &&
           ok(gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE), err) &&
           ok(gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0), err) &&
           ok(gnutls_x509_crt_get_subject_key_id(authority, id, &id_size, NULL), err) &&
           ok(gnutls_x509_crt_set_authority_key_id(certificate, id, id_size), err) &&
           ok(gnutls_x509_crt_sign2(certificate, authority, authority_key, GNUTLS_DIG_SHA256, 0), err) &&
           write_certificate(path, certificate, err);
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static bool open_authority(const char *state, const char *host, int64_t wall_ms, struct tls *tls,
                           gnutls_x509_crt_t *ret_authority, gnutls_x509_privkey_t *ret_key, struct err *err)
{
    autofree char *path = path_of(state, "ca.pem"), *key_path = path_of(state, "ca.key");
    if (!read_certificate(path, ret_authority, err)) {
        return false;
    }
    if (*ret_authority != NULL && access(key_path, F_OK) != 0) {
        err_set(err, ERR_IO, "%s is not there, so no certificate can be signed", key_path);
        return err_hint(err, "put it back, or name a certificate with tls-cert and tls-key");
    }
    tls->made_authority = *ret_authority == NULL;
    return open_key(key_path, ret_key, err) &&
           (*ret_authority != NULL || make_authority(path, host, *ret_key, wall_ms, ret_authority, err));
}

static bool open_server(const char *state, gnutls_x509_crt_t authority, gnutls_x509_privkey_t authority_key,
                        const char *const *names, size_t count, int64_t wall_ms, struct tls *tls,
                        struct err *err)
{
    autofree char *path = path_of(state, "server.pem"), *key_path = path_of(state, "server.key");
    autocertificate gnutls_x509_crt_t certificate = NULL;
    autokey gnutls_x509_privkey_t key = NULL;
    if (!read_certificate(path, &certificate, err)) {
        return false;
    }
    bool has_key = access(key_path, F_OK) == 0;
    const char *why = has_key ? why_anew(certificate, authority, names, count, wall_ms) : "there was no key";
    if (why == NULL) {
        return true;
    }
    log_info("certificate make", "file=%s reason=\"%s\"", path, why);
    tls->made_certificate = true;
    return open_key(key_path, &key, err) &&
           sign_server(path, authority, authority_key, key, names, count, wall_ms, err);
}

static bool read_texts(const char *state, struct tls *tls, struct err *err)
{
    autofree char *authority = path_of(state, "ca.pem"), *certificate = path_of(state, "server.pem"),
                  *key = path_of(state, "server.key");
    return file_read(authority, PEM_BYTES, &tls->authority, NULL, err) &&
           file_read(certificate, PEM_BYTES, &tls->certificate, NULL, err) &&
           file_read(key, PEM_BYTES, &tls->key, NULL, err);
}

bool tls_open(const char *state, const char *const *names, size_t count, int64_t wall_ms, struct tls *ret_tls,
              struct err *err)
{
    autofree char *folder = xprintf("%s/" TLS_FOLDER, state);
    autocertificate gnutls_x509_crt_t authority = NULL;
    autokey gnutls_x509_privkey_t key = NULL;
    *ret_tls = (struct tls){0};
    return file_make_directories(folder, 0700, err) &&
           open_authority(state, count > 0 ? names[0] : "this host", wall_ms, ret_tls, &authority, &key,
                          err) &&
           open_server(state, authority, key, names, count, wall_ms, ret_tls, err) &&
           read_texts(state, ret_tls, err);
}

void tls_finish(struct tls *tls)
{
    if (tls->key != NULL) {
        explicit_bzero(tls->key, strlen(tls->key));
    }
    free(tls->authority);
    free(tls->certificate);
    free(tls->key);
    *tls = (struct tls){0};
}
