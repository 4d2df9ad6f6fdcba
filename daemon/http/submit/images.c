/* SPDX-License-Identifier: Apache-2.0 */
/* Asks registries on a thread of its own, which starts with the first image. The other fields of a spec are
 * checked before, so that nobody waits for a registry to hear of a mistake elsewhere. */
#include "daemon/http/submit/images.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/blob/worker.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/http/base/state.h"
#include "daemon/http/base/submitter.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/secrets/secrets.h"
#include "daemon/http/submit/image_digest.h"
#include "daemon/vault/vault.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"
#include "proto/spec/jobspec.h"

#define DEFAULT_REGISTRY "docker.io"

/* The fields of a spec that name images. */
enum { IMAGE, WORKER_IMAGE, FIELDS };
static const char *const fields[FIELDS] = {"image", "worker_image"};

struct images {
    struct worker *worker;
    struct watch watch;
    size_t waiting;
};

/* The images of a job. It is the state of its request. */
struct pin {
    struct request_work work; /* first */
    struct images *images;
    bool (*then)(struct request *request, struct err *err);
    char *names[FIELDS];  /* NULL: it has its digest, or there is none */
    char *pinned[FIELDS]; /* those of names */
    uint8_t *auth;        /* NULL: none */
    size_t auth_size;
    bool good; /* else err says why not */
    struct err err;
};

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

static bool images_open(struct server *server, struct err *err)
{
    if (server->images != NULL) {
        return true;
    }
    struct images *images = xzalloc(sizeof *images);
    images->worker = worker_open(err);
    if (images->worker == NULL) {
        free(images);
        return false;
    }
    images->watch =
        (struct watch){.fd = worker_fd(images->worker), .ready = worker_ready, .closure = images->worker};
    server->images = images;
    return server_watch(server, &images->watch, err);
}

void images_close(struct images *images)
{
    if (images != NULL) {
        worker_close(images->worker);
        free(images);
    }
}

/* --- registries ----------------------------------------------------------------------------------------- */

/* The registry of an image, as docker, skopeo and umoci read its name: what stands before the first slash if
 * it looks like a host. The caller frees it. */
static char *registry_of(const char *image)
{
    static const char marks[] = ".:ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    autofree char *first = xstrndup(image, strcspn(image, "/"));
    bool host =
        image[strlen(first)] == '/' && (strpbrk(first, marks) != NULL || strcmp(first, "localhost") == 0);
    return host ? give(first) : xstrdup(DEFAULT_REGISTRY);
}

static bool check_registry(const struct server *server, const char *field, const char *image, struct err *err)
{
    const struct server_config *config = &server->config;
    if (image == NULL || config->image_registry_count == 0) {
        return true;
    }
    autofree char *registry = registry_of(image);
    autotext struct text list = {0};
    for (size_t i = 0; i < config->image_registry_count; i++) {
        if (strcasecmp(config->image_registries[i], registry) == 0) {
            return true;
        }
        text_printf(&list, "%s%s", i > 0 ? ", " : "", config->image_registries[i]);
    }
    err_field(err, ERR_FIELD, field, NULL, "the operator lets no images come from %.200s", registry);
    return err_hint(err, "name an image of %.200s", list.bytes);
}

bool images_check(const struct server *server, const struct job_spec *spec, struct err *err)
{
    return check_registry(server, fields[IMAGE], spec->image, err) &&
           check_registry(server, fields[WORKER_IMAGE], spec->worker_image, err);
}

static bool is_tag(const char *image)
{
    return image != NULL && job_image_digest(image) == NULL;
}

const char *images_tag_field(const struct job_spec *spec)
{
    return is_tag(spec->image) ? fields[IMAGE] : is_tag(spec->worker_image) ? fields[WORKER_IMAGE] : NULL;
}

bool images_need(const json_t *spec)
{
    return is_tag(json_string_of(spec, fields[IMAGE])) || is_tag(json_string_of(spec, fields[WORKER_IMAGE]));
}

/* --- the images of a job -------------------------------------------------------------------------------- */

static void pin_free(struct request_work *work)
{
    struct pin *pin = (struct pin *)work;
    if (pin->auth != NULL) {
        vault_wipe(pin->auth, pin->auth_size);
    }
    for (size_t i = 0; i < FIELDS; i++) {
        free(pin->names[i]);
        free(pin->pinned[i]);
    }
    free(pin);
}

static void ask_registry(struct task *task)
{
    struct pin *pin = (struct pin *)task;
    pin->good = true;
    for (size_t i = 0; i < FIELDS && pin->good; i++) {
        pin->good = pin->names[i] == NULL || image_digest_find(fields[i], pin->names[i], pin->auth,
                                                               pin->auth_size, &pin->pinned[i], &pin->err);
    }
}

static void returned(struct request_work *work)
{
    ((struct pin *)work)->images->waiting--;
}

static void go_on(struct request_work *work)
{
    struct pin *pin = (struct pin *)work;
    struct err err = pin->err;
    for (size_t i = 0; i < FIELDS; i++) {
        if (pin->pinned[i] != NULL) {
            json_object_set_new(work->request->json, fields[i], json_string(pin->pinned[i]));
        }
    }
    if (!pin->good || !pin->then(work->request, &err)) {
        request_fail(work->request, &err);
    }
}

static bool take_auth(const struct request *request, const struct job_spec *spec, struct pin *pin,
                      struct err *err)
{
    if (spec->image_secret == NULL) {
        return true;
    }
    autojson json_t *value = secrets_value(request->server, identity_owner(request->who),
                                           job_spec_project(spec), spec->image_secret);
    const char *base64 = json_string_value(value);
    return (base64 != NULL && text_from_base64(base64, strlen(base64), &pin->auth, &pin->auth_size)) ||
           err_field(err, ERR_FIELD, "image_secret", NULL, "the secret %s cannot be read",
                     spec->image_secret);
}

/* Checks all that needs no waiting, as submission.c does again. */
static bool begin(const struct request *request, struct pin *pin, struct err *err)
{
    struct job_spec spec;
    struct server *server = request->server;
    if (!job_spec_decode(json_deep_copy(request->json), server->config.lease_min_ms, &spec, err)) {
        return false;
    }
    const struct submitter submitter = request_submitter(request);
    bool good = authorize_submit(server->projects, request->who, &spec, err) &&
                images_check(server, &spec, err) && secrets_check(&submitter, &spec, err) &&
                take_auth(request, &spec, pin, err);
    pin->names[IMAGE] = is_tag(spec.image) ? xstrdup(spec.image) : NULL;
    pin->names[WORKER_IMAGE] = is_tag(spec.worker_image) ? xstrdup(spec.worker_image) : NULL;
    job_spec_finish(&spec);
    return good;
}

bool images_pin(struct request *request, bool (*then)(struct request *request, struct err *err),
                struct err *err)
{
    struct server *server = request->server;
    if (!images_open(server, err)) {
        return false;
    }
    if (server->images->waiting >= LIMIT_IMAGES_WAITING) {
        err_set(err, ERR_TOO_MANY, "too many jobs wait for registries");
        return err_hint(err, "try again, or name the image with its digest");
    }
    struct pin *pin = xzalloc(sizeof *pin);
    pin->images = server->images;
    pin->then = then;
    pin->work.returned = returned;
    if (!begin(request, pin, err)) {
        pin_free(&pin->work);
        return false;
    }
    server->images->waiting++;
    request_work_begin(&pin->work, request, pin_free);
    return request_work_give(&pin->work, server->images->worker, ask_registry, go_on);
}
