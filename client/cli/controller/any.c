/* SPDX-License-Identifier: Apache-2.0 */
/* Asks all controllers for their plan of a job, and takes the one that would start it first; of equal ones
 * the one in use, then by name. A controller that does not answer, or would refuse the job, is left out. */
#include "client/cli/controller/any.h"

#include <stdint.h>
#include <string.h>

#include "client/cli/controller/clusters.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

bool any_allowed(bool any, const char *key, struct err *err)
{
    return !any || key == NULL ||
           err_field(err, ERR_USAGE, "key", "name the controller with --context",
                     "a key is known to one controller, and --any may take another one the next time");
}

/* --- what a controller has answered --------------------------------------------------------------------- */

/* The better, the lower. */
enum when { KNOWN, LATER, UNKNOWN, NEVER };

struct offer {
    enum when when;
    int64_t at_ms; /* of KNOWN and LATER */
};

static bool is_better(struct offer one, struct offer other)
{
    return one.when != other.when ? one.when < other.when : one.at_ms < other.at_ms;
}

static struct offer offer_of(const struct cluster *cluster, int64_t now_ms)
{
    const json_t *start = json_object_get(cluster->answer, "start");
    int64_t at_ms = print_time_of(start, "at"), later_ms = print_time_of(start, "later_than");
    if (cluster->answer == NULL || json_is_false(json_object_get(cluster->answer, "admitted"))) {
        return (struct offer){.when = NEVER};
    }
    return at_ms != 0      ? (struct offer){KNOWN, at_ms > now_ms ? at_ms : now_ms}
           : later_ms != 0 ? (struct offer){LATER, later_ms}
                           : (struct offer){.when = UNKNOWN};
}

static void note(const struct cluster *cluster, struct offer offer, int64_t now_ms)
{
    char in[32];
    const json_t *refusal = json_object_get(cluster->answer, "refusal");
    const char *why = json_string_of(json_object_get(cluster->answer, "reason"), "text");
    const char *colon = why != NULL ? ": " : "";
    why = why != NULL ? why : "";
    text_from_duration_ms(offer.at_ms > now_ms ? offer.at_ms - now_ms : 0, in, sizeof in);
    if (cluster->answer == NULL) {
        print_note("%s: %s", cluster->name, cluster->err.text);
    } else if (offer.when == NEVER) {
        print_note("%s would refuse it: %s", cluster->name, print_text_of(refusal, "detail"));
    } else if (offer.when == UNKNOWN) {
        print_note("%s cannot say when it would start%s%s", cluster->name, colon, why);
    } else if (offer.at_ms <= now_ms) {
        print_note("%s would start it now", cluster->name);
    } else {
        print_note("%s would start it in %s%s%s%s", cluster->name,
                   offer.when == LATER ? "more than " : "about ", in, colon, why);
    }
}

/* --- all ------------------------------------------------------------------------------------------------ */

static void plan(struct clusters *clusters, const json_t *spec)
{
    autofree char *text = json_text(spec);
    char key[ID_LENGTH + 1];
    random_id(key);
    clusters_ask(clusters, &(struct request){.method = "POST",
                                             .path = "/v1/plan",
                                             .body = text,
                                             .length = strlen(text),
                                             .content_type = "application/json",
                                             .key = key});
}

/* NULL: none would take the job. */
static struct cluster *find_best(const struct call *call, struct clusters *clusters)
{
    int64_t now_ms = clock_wall_ms();
    struct cluster *best = NULL;
    struct offer best_offer = {.when = NEVER};
    for (size_t i = 0; i < clusters->count; i++) {
        struct cluster *cluster = &clusters->items[i];
        struct offer offer = offer_of(cluster, now_ms);
        if (!call->common->quiet) {
            note(cluster, offer, now_ms);
        }
        if (is_better(offer, best_offer)) {
            best = cluster;
            best_offer = offer;
        }
    }
    return best;
}

bool any_connect(const struct call *call, const json_t *spec, struct api **ret_api, struct err *err)
{
    autoclusters struct clusters clusters = {0};
    if (!clusters_open(call, &clusters, err)) {
        return false;
    }
    plan(&clusters, spec);
    struct cluster *best = find_best(call, &clusters);
    if (best == NULL) {
        err_set(err, ERR_UNAVAILABLE, "none of your %zu controllers takes the job", clusters.count);
        return err_hint(err, "gpuctl plan --context NAME says more of one, gpuctl context lists them");
    }
    if (!call->common->quiet) {
        print_note(
            "%s takes it: other commands about the job need --context %s, or `gpuctl context %s` before",
            best->name, best->name, best->name);
    }
    *ret_api = best->api;
    best->api = NULL;
    return true;
}
