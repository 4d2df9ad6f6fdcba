/* SPDX-License-Identifier: Apache-2.0 */
/* A controller that was restored from a backup knows the token that the node had at that time. So renewed
 * tokens are kept: to the controller that ended them they are worth nothing, and to others they never were.
 * Both files are replaced atomically, the earlier ones first: a kill in between leaves the newest in both. */
#include "agent/base/node_tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define TOKEN_BYTES 4096
#define TOKEN_MODE  0600
#define EARLIER     ".earlier"
#define SPACE       " \t\r\n"

/* The youngest first. */
struct tokens {
    char *items[LIMIT_EARLIER_TOKENS];
    size_t count;
};

static void finish(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++) {
        explicit_bzero(tokens->items[i], strlen(tokens->items[i]));
        free(tokens->items[i]);
    }
}

static void add(struct tokens *tokens, const char *token)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (strcmp(tokens->items[i], token) == 0) {
            return;
        }
    }
    if (tokens->count == LIMIT_EARLIER_TOKENS) { /* beyond it, the oldest takes the place of the one before */
        free(tokens->items[--tokens->count]);
    }
    tokens->items[tokens->count++] = xstrdup(token);
}

/* A file that is not there holds none. */
static void add_file(struct tokens *tokens, const char *path)
{
    autofree char *text = NULL;
    char *rest = file_read(path, TOKEN_BYTES, &text, NULL, NULL) ? text : NULL;
    for (char *token; (token = strsep(&rest, SPACE)) != NULL;) {
        if (*token != '\0') {
            add(tokens, token);
        }
    }
}

char *node_tokens_newest(const char *file, struct err *err)
{
    char *token;
    if (!file_read(file, TOKEN_BYTES, &token, NULL, err)) {
        err_hint(err, "give the node's token in a file with --token-file");
        return NULL;
    }
    token[strcspn(token, SPACE)] = '\0';
    return token;
}

char *node_tokens_earlier(const char *file, size_t number)
{
    struct tokens tokens = {0};
    autofree char *path = xprintf("%s" EARLIER, file);
    add_file(&tokens, path);
    char *token = number > 0 && number <= tokens.count ? xstrdup(tokens.items[number - 1]) : NULL;
    finish(&tokens);
    return token;
}

static bool write_newest(const char *file, const char *token, struct err *err)
{
    autofree char *newest = xprintf("%s\n", token);
    bool written = file_replace(file, newest, strlen(newest), TOKEN_MODE, err);
    explicit_bzero(newest, strlen(newest));
    return written;
}

bool node_tokens_replace(const char *file, const char *token, struct err *err)
{
    struct tokens tokens = {0};
    autofree char *path = xprintf("%s" EARLIER, file);
    autotext struct text earlier = {0};
    text_append(&earlier, "");
    add_file(&tokens, file);
    add_file(&tokens, path);
    for (size_t i = 0; i < tokens.count; i++) {
        text_printf(&earlier, "%s\n", tokens.items[i]);
    }
    finish(&tokens);
    bool replaced =
        file_replace(path, earlier.bytes, earlier.length, TOKEN_MODE, err) && write_newest(file, token, err);
    explicit_bzero(earlier.bytes, earlier.length);
    return replaced;
}

bool node_tokens_begin(const char *file, const char *token, struct err *err)
{
    autofree char *path = xprintf("%s" EARLIER, file);
    if (unlink(path) != 0 && errno != ENOENT) {
        return err_errno(err, "cannot remove %s", path);
    }
    return write_newest(file, token, err);
}
