/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names of the search language: the kinds of entities in the many spellings that clients use, and
 * the attributes of a subject. */
#include <string.h>
#include <strings.h>

#include "daemon/mlflow/search/filter.h"
#include "daemon/mlflow/search/lexer.h"

static const struct {
    const char *word;
    enum entity entity;
} entities[] = {
    {"metrics", ENTITY_METRIC},
    {"metric", ENTITY_METRIC},
    {"params", ENTITY_PARAM},
    {"param", ENTITY_PARAM},
    {"parameters", ENTITY_PARAM},
    {"parameter", ENTITY_PARAM},
    {"tags", ENTITY_TAG},
    {"tag", ENTITY_TAG},
    {"attributes", ENTITY_ATTRIBUTE},
    {"attribute", ENTITY_ATTRIBUTE},
    {"attr", ENTITY_ATTRIBUTE},
    {"run", ENTITY_ATTRIBUTE},
    {"datasets", ENTITY_DATASET},
    {"dataset", ENTITY_DATASET},
};

/* Finds the kind that the first length bytes of the word name. */
static bool find_entity(const char *word, size_t length, enum entity *ret_entity)
{
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        if (strlen(entities[i].word) == length && strncasecmp(entities[i].word, word, length) == 0) {
            *ret_entity = entities[i].entity;
            return true;
        }
    }
    return false;
}

static bool is_quoted_name(const struct lexer *lexer)
{
    return lexer->kind == TOKEN_NAME || lexer->kind == TOKEN_EITHER;
}

/* Reads "kind.key", "kind.`key`", "key" or "`key`"; the last two are attributes. */
static void read_parts(struct lexer *lexer, struct filter_name *name)
{
    if (lexer->kind != TOKEN_WORD && !is_quoted_name(lexer)) {
        lexer_expected(lexer, "a name as metrics.loss");
    }
    const char *dot = lexer->kind == TOKEN_WORD ? strchr(lexer->text, '.') : NULL;
    if (dot != NULL && !find_entity(lexer->text, (size_t)(dot - lexer->text), &name->entity)) {
        lexer_expected(lexer, "a name that begins with metrics., params., tags., attributes. or datasets.");
    }
    if (dot != NULL && dot[1] == '\0') {
        lexer_next(lexer);
        dot = NULL;
        if (!is_quoted_name(lexer) || !lexer->glued) {
            lexer_expected(lexer, "a key");
        }
    }
    name->key = xstrdup(dot != NULL ? dot + 1 : lexer->text);
    lexer_next(lexer);
}

static void find_column(struct lexer *lexer, const struct attribute *attributes, struct filter_name *name,
                        size_t at)
{
    autotext struct text known = {0};
    for (const struct attribute *item = attributes; item != NULL && item->name != NULL; item++) {
        if (strcasecmp(item->name, name->key) == 0) {
            name->column = item->column;
            name->is_number = item->is_number;
            return;
        }
        text_printf(&known, "%s%s", known.length > 0 ? ", " : "", item->name);
    }
    call_refuse(lexer->call, "Invalid %s: '%.100s' at character %zu is no attribute. Known are: %s.",
                lexer->what, name->key, at, known.length > 0 ? known.bytes : "none");
}

struct filter_name filter_name_read(struct lexer *lexer, const struct subject *subject)
{
    struct filter_name name = {.entity = ENTITY_ATTRIBUTE};
    size_t at = lexer->at;
    read_parts(lexer, &name);
    switch (name.entity) {
    case ENTITY_METRIC:
        name.table = subject->metrics;
        name.is_number = true;
        break;
    case ENTITY_PARAM:
        name.table = subject->params;
        break;
    case ENTITY_TAG:
        name.table = subject->tags;
        break;
    case ENTITY_ATTRIBUTE:
        find_column(lexer, subject->attributes, &name, at);
        return name;
    case ENTITY_DATASET:
        find_column(lexer, subject->datasets, &name, at);
        return name;
    }
    if (name.table == NULL) {
        call_refuse(lexer->call, "Invalid %s: %s (character %zu).", lexer->what, subject->lacks, at);
    }
    return name;
}
