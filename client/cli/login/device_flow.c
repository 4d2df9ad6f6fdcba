/* SPDX-License-Identifier: Apache-2.0 */
/* Speaks OAuth 2.0 to the identity provider that the controller names. The provider's secrets go to its own
 * places alone, and the controller gets nothing but the ID token. */
#include "client/cli/login/device_flow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/http/discovery.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

#define DEVICE_GRANT "urn:ietf:params:oauth:grant-type:device_code"

void identity_tokens_finish(struct identity_tokens *tokens)
{
    char **texts[] = {&tokens->id_token, &tokens->refresh_token};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (*texts[i] != NULL) {
            explicit_bzero(*texts[i], strlen(*texts[i]));
            free(*texts[i]);
            *texts[i] = NULL;
        }
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static struct fetch bounds(void)
{
    return (struct fetch){.user_agent = "gpuctl/" GPUCTL_VERSION,
                          .limit_bytes = CLIENT_LOGIN_BYTES,
                          .timeout_ms = CLIENT_REPLY_MS};
}

/* The object that it answers, also with an error. NULL: *err. */
static json_t *post(const char *url, const struct text *form, long *ret_status, struct err *err)
{
    struct fetch fetch = bounds();
    autotext struct text body = {0};
    fetch.url = url;
    fetch.form = form->bytes;
    if (!fetch_send(&fetch, &body, ret_status, err)) {
        return NULL;
    }
    json_t *json = json_parse(body.bytes != NULL ? body.bytes : "", body.length, err);
    if (!json_is_object(json)) {
        json_decref(json);
        err_set(err, ERR_UNAVAILABLE, "the identity provider answers with HTTP status %ld and no JSON",
                *ret_status);
        return NULL;
    }
    return json;
}

static bool refuse(const json_t *answer, const char *what, struct err *err)
{
    const char *error = json_string_of(answer, "error"), *more = json_string_of(answer, "error_description");
    return err_set(err, ERR_UNAUTHENTICATED, "the identity provider refuses %s: %.100s%s%.200s", what,
                   error != NULL ? error : "it does not say why", more != NULL ? ": " : "",
                   more != NULL ? more : "");
}

static bool take_tokens(const json_t *answer, struct identity_tokens *ret_tokens, struct err *err)
{
    const char *id = json_string_of(answer, "id_token"), *refresh = json_string_of(answer, "refresh_token");
    if (id == NULL) {
        return err_set(err, ERR_UNAUTHENTICATED, "the identity provider gave no ID token");
    }
    *ret_tokens = (struct identity_tokens){.id_token = xstrdup(id),
                                           .refresh_token = refresh != NULL ? xstrdup(refresh) : NULL};
    return true;
}

/* --- the code ------------------------------------------------------------------------------------------- */

/* What the person is shown, and what it is asked for with. */
struct device {
    json_t *json;
    const char *code;         /* the device's, a secret */
    const char *user_code;    /* the person's */
    const char *place;        /* where they enter it */
    const char *whole_place;  /* the same with the code; or NULL */
    int64_t pause_ms, end_ms; /* between two questions; and the end, CLOCK_BOOTTIME */
};

static int64_t seconds_of(const json_t *json, const char *name, int64_t absent)
{
    int64_t seconds = json_integer_value(json_object_get(json, name));
    return seconds > 0 && seconds <= CLIENT_LOGIN_MOST_S ? seconds : absent;
}

static void tell(const struct device *device)
{
    print_note("open %s in a browser, on any device, and enter the code %s", device->place,
               device->user_code);
    if (device->whole_place != NULL) {
        print_note("or open %s, and see that it shows that code", device->whole_place);
    }
}

static bool begin(const struct identity_provider *provider, const struct discovery *discovery,
                  struct device *device, struct err *err)
{
    autotext struct text form = {0};
    long status;
    fetch_add(&form, "client_id", provider->client_id);
    fetch_add(&form, "scope", provider->scopes);
    device->json = post(discovery->device, &form, &status, err);
    if (device->json == NULL) {
        return false;
    }
    if (status != 200) {
        return refuse(device->json, "to begin a login", err);
    }
    device->code = json_string_of(device->json, "device_code");
    device->user_code = json_string_of(device->json, "user_code");
    device->place = json_string_of(device->json, "verification_uri");
    device->whole_place = json_string_of(device->json, "verification_uri_complete");
    device->pause_ms = 1000 * seconds_of(device->json, "interval", CLIENT_LOGIN_PAUSE_S);
    device->end_ms = clock_boot_ms() + 1000 * seconds_of(device->json, "expires_in", CLIENT_LOGIN_S);
    if (device->code == NULL || device->user_code == NULL || device->place == NULL) {
        return err_set(err, ERR_UNAVAILABLE, "the identity provider begins a login without a code");
    }
    tell(device);
    return true;
}

/* --- waiting -------------------------------------------------------------------------------------------- */

enum turn { TURN_AGAIN, TURN_DONE, TURN_FAILED };

static bool says(const json_t *answer, const char *error)
{
    const char *text = json_string_of(answer, "error");
    return text != NULL && strcmp(text, error) == 0;
}

/* The provider is away for a moment, or has too much to do: it is asked less often. */
static enum turn ask_later(struct device *device)
{
    device->pause_ms += 1000 * CLIENT_LOGIN_PAUSE_S;
    return TURN_AGAIN;
}

static enum turn ask(const struct identity_provider *provider, const struct discovery *discovery,
                     struct device *device, struct identity_tokens *ret_tokens, struct err *err)
{
    autotext struct text form = {0};
    long status;
    fetch_add(&form, "grant_type", DEVICE_GRANT);
    fetch_add(&form, "device_code", device->code);
    fetch_add(&form, "client_id", provider->client_id);
    autojson json_t *answer = post(discovery->token, &form, &status, err);
    if (answer == NULL || says(answer, "slow_down")) {
        return ask_later(device);
    }
    if (status == 200) {
        return take_tokens(answer, ret_tokens, err) ? TURN_DONE : TURN_FAILED;
    }
    if (says(answer, "authorization_pending")) {
        return TURN_AGAIN;
    }
    if (says(answer, "access_denied")) {
        err_set(err, ERR_FORBIDDEN, "the login was refused in the browser");
    } else if (says(answer, "expired_token")) {
        device->end_ms = 0;
        return TURN_AGAIN;
    } else {
        refuse(answer, "the login", err);
    }
    return TURN_FAILED;
}

static bool await(const struct identity_provider *provider, const struct discovery *discovery,
                  struct device *device, struct identity_tokens *ret_tokens, struct err *err)
{
    enum turn turn = TURN_AGAIN;
    while (turn == TURN_AGAIN && clock_boot_ms() + device->pause_ms < device->end_ms) {
        usleep((useconds_t)(1000 * device->pause_ms));
        turn = ask(provider, discovery, device, ret_tokens, err);
    }
    if (turn == TURN_AGAIN) {
        err_set(err, ERR_WAIT_TIMEOUT, "nobody has entered the code %.64s in time", device->user_code);
        return err_hint(err, "begin again with gpuctl login");
    }
    return turn == TURN_DONE;
}

static bool explain(const struct identity_provider *provider, struct err *err)
{
    err_set(err, ERR_UNAVAILABLE, "the identity provider %.200s has no device flow", provider->issuer);
    return err_hint(err,
                    "have an administrator switch it on for the client %.100s, or make you a token: gpuctl "
                    "token create --owner NAME",
                    provider->client_id);
}

bool device_flow_run(const struct identity_provider *provider, struct identity_tokens *ret_tokens,
                     struct err *err)
{
    const struct fetch fetch = bounds();
    struct discovery discovery;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    if (!discovery_fetch(provider->issuer, &fetch, &discovery, err)) {
        return false;
    }
    struct device device = {.json = NULL};
    bool good = discovery.device != NULL ? begin(provider, &discovery, &device, err) : explain(provider, err);
    good = good && await(provider, &discovery, &device, ret_tokens, err);
    json_decref(device.json);
    discovery_finish(&discovery);
    return good;
}

/* --- renewal -------------------------------------------------------------------------------------------- */

static bool refresh(const struct identity_provider *provider, const struct discovery *discovery,
                    const char *refresh_token, struct identity_tokens *ret_tokens, struct err *err)
{
    autotext struct text form = {0};
    long status;
    fetch_add(&form, "grant_type", "refresh_token");
    fetch_add(&form, "refresh_token", refresh_token);
    fetch_add(&form, "client_id", provider->client_id);
    autojson json_t *answer = post(discovery->token, &form, &status, err);
    explicit_bzero(form.bytes, form.length);
    if (answer == NULL) {
        return false;
    }
    if (status != 200) {
        return refuse(answer, "to renew the login", err);
    }
    if (!take_tokens(answer, ret_tokens, err)) {
        return false;
    }
    if (ret_tokens->refresh_token == NULL) {
        ret_tokens->refresh_token = xstrdup(refresh_token); /* it is good for the next time, too */
    }
    return true;
}

bool device_flow_refresh(const struct identity_provider *provider, const char *refresh_token,
                         struct identity_tokens *ret_tokens, struct err *err)
{
    const struct fetch fetch = bounds();
    struct discovery discovery;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    if (!discovery_fetch(provider->issuer, &fetch, &discovery, err)) {
        return false;
    }
    bool good = refresh(provider, &discovery, refresh_token, ret_tokens, err);
    discovery_finish(&discovery);
    return good;
}
