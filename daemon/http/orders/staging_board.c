/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the progress of stagings: when a node was told of one, its newest line, and when that came. A node
 * has an entry for each staging that its orders list, so the core bounds their number. The entry that most
 * needs a look is shown first. Nothing here is stored or decides anything: after a restart of the controller
 * times count anew. */
#include "daemon/http/orders/staging_board.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/text/table.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

struct entry {
    char key[HASH_HEX + 1];
    int64_t told_ms;
    int64_t heard_ms; /* -1: never */
    char *text;       /* or NULL */
};

struct board_node {
    char *name;
    struct entry *entries;
    size_t count;
    UT_hash_handle hh;
};

struct staging_board {
    struct board_node *nodes; /* by name; none is empty */
};

struct staging_board *staging_board_create(void)
{
    return xzalloc(sizeof(struct staging_board));
}

static struct board_node *find_node(const struct staging_board *board, const char *name)
{
    struct board_node *node;
    HASH_FIND_STR(board->nodes, name, node);
    return node;
}

static struct entry *find_entry(const struct board_node *node, const char *key)
{
    for (size_t i = 0; node != NULL && i < node->count; i++) {
        if (strcmp(node->entries[i].key, key) == 0) {
            return &node->entries[i];
        }
    }
    return NULL;
}

static void free_entries(struct entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(entries[i].text);
    }
    free(entries);
}

static void drop_node(struct staging_board *board, struct board_node *node)
{
    if (node != NULL) {
        HASH_DEL(board->nodes, node);
        free_entries(node->entries, node->count);
        free(node->name);
        free(node);
    }
}

void staging_board_destroy(struct staging_board *board)
{
    while (board != NULL && board->nodes != NULL) {
        drop_node(board, board->nodes);
    }
    free(board);
}

/* --- orders and reports --------------------------------------------------------------------------------- */

static struct board_node *make_node(struct staging_board *board, const char *name)
{
    struct board_node *node = xzalloc(sizeof *node);
    node->name = xstrdup(name);
    HASH_ADD_KEYPTR(hh, board->nodes, node->name, strlen(node->name), node);
    return node;
}

/* The entry that the node has under the key, which is then empty there, or a new one. */
static struct entry take_entry(const struct board_node *node, const char *key, int64_t now_ms)
{
    struct entry fresh = {.told_ms = now_ms, .heard_ms = -1};
    struct entry *known = find_entry(node, key);
    if (known != NULL) {
        fresh = *known;
        known->text = NULL;
    }
    snprintf(fresh.key, sizeof fresh.key, "%s", key);
    return fresh;
}

void staging_board_told(struct staging_board *board, const struct node_orders *orders, int64_t now_ms)
{
    struct board_node *node = find_node(board, orders->node);
    if (orders->staging_count == 0) {
        drop_node(board, node);
        return;
    }
    node = node != NULL ? node : make_node(board, orders->node);
    struct entry *entries = xzalloc(orders->staging_count * sizeof *entries);
    for (size_t i = 0; i < orders->staging_count; i++) {
        entries[i] = take_entry(node, orders->stagings[i].key, now_ms);
    }
    free_entries(node->entries, node->count);
    node->entries = entries;
    node->count = orders->staging_count;
}

void staging_board_hear(struct staging_board *board, const char *name, const char *key, const char *text,
                        int64_t now_ms)
{
    struct entry *entry = find_entry(find_node(board, name), key);
    if (entry != NULL) {
        free(entry->text);
        entry->text = text != NULL && text[0] != '\0' ? xstrdup(text) : NULL;
        entry->heard_ms = now_ms;
    }
}

/* --- views ---------------------------------------------------------------------------------------------- */

static struct staging_view view_of(const char *node, const struct entry *entry, int64_t now_ms)
{
    bool heard = entry->heard_ms >= 0;
    return (struct staging_view){.node = node,
                                 .heard = heard,
                                 .text = entry->text,
                                 .since_ms = now_ms - entry->told_ms,
                                 .silent_ms = now_ms - (heard ? entry->heard_ms : entry->told_ms)};
}

static int worst_first(const void *a, const void *b)
{
    const struct staging_view *left = a, *right = b;
    if (left->silent_ms != right->silent_ms) {
        return left->silent_ms > right->silent_ms ? -1 : 1;
    }
    return strcmp(left->node, right->node);
}

struct staging_view *staging_board_look(const struct staging_board *board, const char *key, int64_t now_ms,
                                        size_t *ret_count)
{
    struct staging_view *views = xzalloc((HASH_COUNT(board->nodes) + 1) * sizeof *views);
    size_t count = 0;
    for (const struct board_node *node = board->nodes; node != NULL; node = node->hh.next) {
        const struct entry *entry = find_entry(node, key);
        if (entry != NULL) {
            views[count++] = view_of(node->name, entry, now_ms);
        }
    }
    qsort(views, count, sizeof *views, worst_first);
    *ret_count = count < LIMIT_ATTEMPT_NODES ? count : LIMIT_ATTEMPT_NODES;
    return views;
}

static void say_node(const struct staging_view *node, bool environment, struct text *out)
{
    const char *colon = node->text != NULL ? ": " : "";
    const char *text = node->text != NULL ? node->text : "";
    long long since_s = node->since_ms / 1000, silent_s = node->silent_ms / 1000;
    bool stuck = node->silent_ms >= STAGING_SILENT_MS;
    text_printf(out, "node %s ", node->node);
    if (!node->heard) {
        text_printf(out, "was sent the order %lld s ago%s", since_s,
                    stuck ? ", and has said nothing since" : "");
    } else if (stuck) {
        text_printf(out, "has made no progress for %lld s%s%s", silent_s, colon, text);
    } else {
        text_printf(out, "%s%s%s (%lld s)",
                    environment ? "builds the environment" : "fetches what the job needs", colon, text,
                    since_s);
    }
}

void staging_board_say(const struct staging_view *nodes, size_t count, bool environment, struct text *out)
{
    if (count == 0) {
        text_append(out, "nodes are chosen to prepare the job's environment");
        return;
    }
    say_node(&nodes[0], environment, out);
    if (count > 1) {
        text_printf(out, "; %zu other node%s, too", count - 1, count == 2 ? "" : "s");
    }
}
