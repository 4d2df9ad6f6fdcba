/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is known of the progress of stagings: since when a node knows of one, the newest line that it
 * said, and when. It promises that an entry lives as long as the node's orders list it, so that the core
 * bounds their number, and that the entry which most needs a look is shown first. Nothing here is stored or
 * decides anything: after a restart of the controller times count anew. */
#include "daemon/http/orders/staging_board.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "proto/base/hash.h"
#include "proto/base/table.h"
#include "proto/limits.h"

struct entry {
    struct subject *subject;
    struct board_node *node;
    int64_t told_ms;
    int64_t heard_ms;          /* -1: never */
    char *text;                /* or NULL */
    uint64_t turn;             /* of the orders that listed it last */
    struct entry *prev, *next; /* of the node */
    UT_hash_handle hh;         /* of the subject, by the node's name */
};

/* What several nodes may get ready at a time. */
struct subject {
    char key[HASH_HEX + 1];
    struct entry *entries;
    UT_hash_handle hh;
};

struct board_node {
    char *name;
    struct entry *entries;
    UT_hash_handle hh;
};

struct staging_board {
    struct subject *subjects; /* by key; none is empty */
    struct board_node *nodes; /* by name; none is empty */
    uint64_t turn;
};

struct staging_board *staging_board_create(void)
{
    return xzalloc(sizeof(struct staging_board));
}

/* --- entries --- */

static struct subject *find_subject(const struct staging_board *board, const char *key)
{
    struct subject *subject;
    HASH_FIND_STR(board->subjects, key, subject);
    return subject;
}

static struct entry *find_entry(const struct subject *subject, const char *node)
{
    struct entry *entry = NULL;
    if (subject != NULL) {
        HASH_FIND(hh, subject->entries, node, strlen(node), entry);
    }
    return entry;
}

static struct subject *find_or_make_subject(struct staging_board *board, const char *key)
{
    struct subject *subject = find_subject(board, key);
    if (subject == NULL) {
        subject = xzalloc(sizeof *subject);
        snprintf(subject->key, sizeof subject->key, "%s", key);
        HASH_ADD_STR(board->subjects, key, subject);
    }
    return subject;
}

static struct board_node *find_or_make_node(struct staging_board *board, const char *name)
{
    struct board_node *node;
    HASH_FIND_STR(board->nodes, name, node);
    if (node == NULL) {
        node = xzalloc(sizeof *node);
        node->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, board->nodes, node->name, strlen(node->name), node);
    }
    return node;
}

static struct entry *make_entry(struct staging_board *board, const char *node, const char *key,
                                int64_t now_ms)
{
    struct entry *entry = xzalloc(sizeof *entry);
    entry->subject = find_or_make_subject(board, key);
    entry->node = find_or_make_node(board, node);
    entry->told_ms = now_ms;
    entry->heard_ms = -1;
    HASH_ADD_KEYPTR(hh, entry->subject->entries, entry->node->name, strlen(entry->node->name), entry);
    DL_APPEND(entry->node->entries, entry);
    return entry;
}

static void drop_entry(struct staging_board *board, struct entry *entry)
{
    struct subject *subject = entry->subject;
    struct board_node *node = entry->node;
    HASH_DEL(subject->entries, entry);
    DL_DELETE(node->entries, entry);
    free(entry->text);
    free(entry);
    if (subject->entries == NULL) {
        HASH_DEL(board->subjects, subject);
        free(subject);
    }
    if (node->entries == NULL) {
        HASH_DEL(board->nodes, node);
        free(node->name);
        free(node);
    }
}

void staging_board_destroy(struct staging_board *board)
{
    while (board != NULL && board->nodes != NULL) {
        drop_entry(board, board->nodes->entries);
    }
    free(board);
}

/* --- what nodes are told, and say --- */

/* Of a node all of whose entries go, nothing is left in the end. */
static void drop_others(struct staging_board *board, const char *name)
{
    struct board_node *node;
    HASH_FIND_STR(board->nodes, name, node);
    struct entry *entry = node != NULL ? node->entries : NULL;
    while (entry != NULL) {
        struct entry *next = entry->next;
        if (entry->turn != board->turn) {
            drop_entry(board, entry);
        }
        entry = next;
    }
}

void staging_board_told(struct staging_board *board, const struct node_orders *orders, int64_t now_ms)
{
    board->turn++;
    for (size_t i = 0; i < orders->staging_count; i++) {
        const char *key = orders->stagings[i].key;
        struct entry *entry = find_entry(find_subject(board, key), orders->node);
        if (entry == NULL) {
            entry = make_entry(board, orders->node, key, now_ms);
        }
        entry->turn = board->turn;
    }
    drop_others(board, orders->node);
}

void staging_board_hear(struct staging_board *board, const char *node, const char *key, const char *text,
                        int64_t now_ms)
{
    struct entry *entry = find_entry(find_subject(board, key), node);
    if (entry == NULL) {
        return;
    }
    free(entry->text);
    entry->text = text != NULL && text[0] != '\0' ? xstrdup(text) : NULL;
    entry->heard_ms = now_ms;
}

/* --- what is shown --- */

static struct staging_view view_of(const struct entry *entry, int64_t now_ms)
{
    bool heard = entry->heard_ms >= 0;
    return (struct staging_view){.node = entry->node->name,
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
    const struct subject *subject = find_subject(board, key);
    size_t count = 0;
    struct staging_view *nodes =
        xzalloc((subject != NULL ? HASH_COUNT(subject->entries) : 1) * sizeof *nodes);
    for (const struct entry *entry = subject != NULL ? subject->entries : NULL; entry != NULL;
         entry = entry->hh.next) {
        nodes[count++] = view_of(entry, now_ms);
    }
    qsort(nodes, count, sizeof *nodes, worst_first);
    *ret_count = count < LIMIT_ATTEMPT_NODES ? count : LIMIT_ATTEMPT_NODES;
    return nodes;
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
