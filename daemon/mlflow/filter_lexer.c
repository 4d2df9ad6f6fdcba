/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a filter into tokens. It knows no grammar: every character that is no space, quote, operator or mark
 * belongs to a word. */
#include "daemon/mlflow/filter_lexer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPACES "\t\n\v\f\r "
/* The characters that end a word. */
#define ENDS SPACES "'\"`=!<>(),;"

bool filter_lexer_init(struct filter_lexer *lexer, const char *what, const char *text,
                       struct tracking_error *error)
{
    *lexer = (struct filter_lexer){.what = what, .all = text, .rest = text};
    return filter_lexer_next(lexer, error);
}

void filter_lexer_finish(struct filter_lexer *lexer)
{
    free(lexer->token.text);
    lexer->token.text = NULL;
}

static void take(struct filter_lexer *lexer, enum filter_token_kind kind, size_t length)
{
    lexer->token.kind = kind;
    lexer->token.text = xstrndup(lexer->rest, length);
    lexer->rest += length;
}

/* A doubled quote inside stands for a single one. */
static bool take_quoted(struct filter_lexer *lexer, enum filter_token_kind kind, struct tracking_error *error)
{
    char quote = *lexer->rest;
    struct text inside = {0};
    text_append(&inside, "");
    for (const char *c = lexer->rest + 1; *c != '\0'; c++) {
        if (*c == quote && *++c != quote) {
            lexer->rest = c;
            lexer->token.kind = kind;
            lexer->token.text = text_take(&inside);
            return true;
        }
        text_append_bytes(&inside, c, 1);
    }
    text_finish(&inside);
    return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Invalid %s: the quote %c at character %zu is not closed.", lexer->what, quote,
                         lexer->token.at);
}

static size_t operator_length(const char *rest)
{
    static const char *const operators[] = {"!=", "<=", ">=", "=", "<", ">"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t length = strlen(operators[i]);
        if (strncmp(rest, operators[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

bool filter_lexer_next(struct filter_lexer *lexer, struct tracking_error *error)
{
    filter_lexer_finish(lexer);
    size_t spaces = strspn(lexer->rest, SPACES);
    lexer->rest += spaces;
    lexer->token.glued = spaces == 0;
    lexer->token.at = (size_t)(lexer->rest - lexer->all) + 1;
    size_t length = operator_length(lexer->rest);
    if (length > 0) {
        take(lexer, FILTER_TOKEN_OPERATOR, length);
        return true;
    }
    switch (*lexer->rest) {
    case '\0':
        take(lexer, FILTER_TOKEN_END, 0);
        return true;
    case '\'':
        return take_quoted(lexer, FILTER_TOKEN_TEXT, error);
    case '"':
        return take_quoted(lexer, FILTER_TOKEN_EITHER, error);
    case '`':
        return take_quoted(lexer, FILTER_TOKEN_NAME, error);
    case '(':
    case ')':
    case ',':
        take(lexer, FILTER_TOKEN_MARK, 1);
        return true;
    case ';':
    case '!':
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Invalid %s: unexpected '%c' at character %zu.", lexer->what, *lexer->rest,
                             lexer->token.at);
    default:
        take(lexer, FILTER_TOKEN_WORD, strcspn(lexer->rest, ENDS));
        return true;
    }
}

bool filter_token_is(const struct filter_lexer *lexer, const char *word)
{
    enum filter_token_kind kind = lexer->token.kind;
    return (kind == FILTER_TOKEN_WORD || kind == FILTER_TOKEN_OPERATOR || kind == FILTER_TOKEN_MARK) &&
           strcasecmp(lexer->token.text, word) == 0;
}

bool filter_expected(const struct filter_lexer *lexer, const char *expected, struct tracking_error *error)
{
    if (lexer->token.kind == FILTER_TOKEN_END) {
        return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                             "Invalid %s: it ends where %s is expected.", lexer->what, expected);
    }
    return tracking_fail(error, TRACKING_INVALID_PARAMETER_VALUE,
                         "Invalid %s: '%.100s' at character %zu, where %s is expected.", lexer->what,
                         lexer->token.text, lexer->token.at, expected);
}
