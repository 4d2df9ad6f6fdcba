/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a filter into tokens. It knows no grammar: every character that is no space, quote, operator or mark
 * belongs to a word. */
#include "daemon/mlflow/search/lexer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPACES "\t\n\v\f\r "
/* The characters that end a word. */
#define ENDS SPACES "'\"`=!<>(),;"

void lexer_init(struct lexer *lexer, struct call *call, const char *what, const char *text)
{
    *lexer = (struct lexer){.call = call, .what = what, .all = text, .rest = text};
    lexer_next(lexer);
}

void lexer_finish(struct lexer *lexer)
{
    free(lexer->text);
    lexer->text = NULL;
}

static void take(struct lexer *lexer, enum token_kind kind, size_t length)
{
    lexer->kind = kind;
    lexer->text = xstrndup(lexer->rest, length);
    lexer->rest += length;
}

/* A doubled quote inside stands for a single one. */
static void take_quoted(struct lexer *lexer, enum token_kind kind)
{
    char quote = *lexer->rest;
    struct text inside = {0};
    text_append(&inside, "");
    for (const char *c = lexer->rest + 1; *c != '\0'; c++) {
        if (*c == quote && *++c != quote) {
            lexer->rest = c;
            lexer->kind = kind;
            lexer->text = text_take(&inside);
            return;
        }
        text_append_bytes(&inside, c, 1);
    }
    text_finish(&inside);
    call_refuse(lexer->call, "Invalid %s: the quote %c at character %zu is not closed.", lexer->what, quote,
                lexer->at);
    take(lexer, TOKEN_END, 0);
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

void lexer_next(struct lexer *lexer)
{
    lexer_finish(lexer);
    size_t spaces = strspn(lexer->rest, SPACES);
    lexer->rest += spaces;
    lexer->glued = spaces == 0;
    lexer->at = (size_t)(lexer->rest - lexer->all) + 1;
    size_t length = operator_length(lexer->rest);
    char first = lexer->call->failed ? '\0' : *lexer->rest;
    if (first == '\0') {
        take(lexer, TOKEN_END, 0);
    } else if (length > 0) {
        take(lexer, TOKEN_OPERATOR, length);
    } else if (strchr("'\"`", first) != NULL) {
        take_quoted(lexer, first == '\'' ? TOKEN_TEXT : first == '"' ? TOKEN_EITHER : TOKEN_NAME);
    } else if (strchr("(),", first) != NULL) {
        take(lexer, TOKEN_MARK, 1);
    } else if (strchr(";!", first) != NULL) {
        call_refuse(lexer->call, "Invalid %s: unexpected '%c' at character %zu.", lexer->what, first,
                    lexer->at);
        take(lexer, TOKEN_END, 0);
    } else {
        take(lexer, TOKEN_WORD, strcspn(lexer->rest, ENDS));
    }
}

bool lexer_is(const struct lexer *lexer, const char *word)
{
    return (lexer->kind == TOKEN_WORD || lexer->kind == TOKEN_OPERATOR || lexer->kind == TOKEN_MARK) &&
           strcasecmp(lexer->text, word) == 0;
}

bool lexer_skip(struct lexer *lexer, const char *word)
{
    bool is = lexer_is(lexer, word);
    if (is) {
        lexer_next(lexer);
    }
    return is;
}

void lexer_expected(struct lexer *lexer, const char *expected)
{
    if (lexer->kind == TOKEN_END) {
        call_refuse(lexer->call, "Invalid %s: it ends where %s is expected.", lexer->what, expected);
    } else {
        call_refuse(lexer->call, "Invalid %s: '%.100s' at character %zu, where %s is expected.", lexer->what,
                    lexer->text, lexer->at, expected);
    }
}
