/* SPDX-License-Identifier: Apache-2.0 */
/* The node draws the secret of the new token and sends its hash; the answer has the id. The old token is good
 * until the new one is used for the first time, so neither a lost answer nor a kill between the answer and
 * the file leaves the node without one. The age of a token is that of its file. An earlier token, which a
 * restored controller knows, is renewed at once, so that the newest is one that it knows. */
#include "agent/node/token_renewal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/base/node_tokens.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/members.h"
#include "proto/wire/token.h"

struct token_renewal {
    struct agent_context *context;
    struct loop_timer timer;
    struct controller_request *request; /* NULL: none is under way */
    bool hurried; /* the requests have an earlier token, whose renewal has begun at once */
    char secret[TOKEN_SECRET_LENGTH + 1];
};

struct token_renewal *token_renewal_create(struct agent_context *context)
{
    struct token_renewal *renewal = xzalloc(sizeof *renewal);
    renewal->context = context;
    return renewal;
}

void token_renewal_destroy(struct token_renewal *renewal)
{
    if (renewal == NULL) {
        return;
    }
    controller_cancel(renewal->request);
    loop_disarm(renewal->context->loop, &renewal->timer);
    explicit_bzero(renewal->secret, sizeof renewal->secret);
    free(renewal);
}

static void due(void *closure);

static void wait_for(struct token_renewal *renewal, int64_t ms)
{
    struct loop *loop = renewal->context->loop;
    loop_set(loop, &renewal->timer, due, renewal);
    loop_arm(loop, &renewal->timer, clock_boot_ms() + ms);
}

static bool keep(struct token_renewal *renewal, json_t *answer, struct err *err)
{
    const char *id = "";
    if (!json_need_text(answer, "token_id", &id, err)) {
        return false;
    }
    autofree char *token = xprintf(TOKEN_PREFIX "%s_%s", id, renewal->secret);
    bool kept = node_tokens_replace(renewal->context->config.token_file, token, err) &&
                controller_client_renew(renewal->context->controller, err);
    explicit_bzero(token, strlen(token));
    return kept;
}

/* A token that is bound to no node stays: others may use it. */
static void answered(void *closure, const struct controller_answer *answer)
{
    struct token_renewal *renewal = closure;
    struct err err = answer->problem;
    renewal->request = NULL;
    if (answer->status / 100 == 2 && keep(renewal, answer->json, &err)) {
        log_info("node token renewed", "name=%s", renewal->context->config.name);
    } else if (answer->status != err_http(ERR_CONFLICT)) {
        log_warning("node token kept", "name=%s problem=\"%s\"", renewal->context->config.name, err.text);
    }
    explicit_bzero(renewal->secret, sizeof renewal->secret);
    wait_for(renewal, renewal->context->config.token_life_ms);
}

static json_t *body(void *closure)
{
    const struct token_renewal *renewal = closure;
    char hex[HASH_HEX + 1];
    json_t *json = json_object();
    hash_hex(renewal->secret, TOKEN_SECRET_LENGTH, hex);
    member_put_text(json, "node", renewal->context->config.name);
    member_put_text(json, "secret_sha256", hex);
    return json;
}

static void due(void *closure)
{
    struct token_renewal *renewal = closure;
    uint8_t random[TOKEN_SECRET_RANDOM];
    random_fill(random, sizeof random);
    token_secret_make(random, renewal->secret);
    renewal->request =
        controller_post(renewal->context->controller, "/v1/agent/token", body, answered, renewal);
}

void token_renewal_begin(struct token_renewal *renewal)
{
    struct stat file;
    int64_t life_ms = renewal->context->config.token_life_ms;
    bool behind = controller_client_is_behind(renewal->context->controller);
    bool now = behind && !renewal->hurried;
    renewal->hurried = behind;
    if (life_ms == 0 || (renewal->timer.on && !now) || renewal->request != NULL ||
        stat(renewal->context->config.token_file, &file) != 0) {
        return;
    }
    int64_t age_ms = clock_wall_ms() - (int64_t)file.st_mtim.tv_sec * 1000;
    int64_t left_ms = age_ms < 0 ? life_ms : age_ms < life_ms ? life_ms - age_ms : 0;
    wait_for(renewal, now ? 0 : left_ms);
}
