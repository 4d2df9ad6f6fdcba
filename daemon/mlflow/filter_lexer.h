/* SPDX-License-Identifier: Apache-2.0 */
/* Splits MLflow's search language into tokens. */
#ifndef MLFLOW_FILTER_LEXER_H
#define MLFLOW_FILTER_LEXER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/mlflow/tracking.h"

enum filter_token_kind {
    FILTER_TOKEN_END,
    FILTER_TOKEN_WORD,     /* metrics.loss, AND, 0.5 */
    FILTER_TOKEN_NAME,     /* in backticks */
    FILTER_TOKEN_EITHER,   /* in double quotes: a name or a text */
    FILTER_TOKEN_TEXT,     /* in single quotes */
    FILTER_TOKEN_OPERATOR, /* = != < <= > >= */
    FILTER_TOKEN_MARK,     /* ( ) , */
};

struct filter_token {
    enum filter_token_kind kind;
    char *text; /* without quotes, doubled ones as one; owned by the lexer until the next token */
    size_t at;  /* of its first character, from 1 */
    bool glued; /* nothing stands between this token and the previous one */
};

struct filter_lexer {
    const char *what; /* "filter" or "order_by", for errors */
    const char *all;
    const char *rest;
    struct filter_token token; /* the current token */
};

/* Moves to the first token. The caller owns text and keeps it valid. */
bool filter_lexer_init(struct filter_lexer *lexer, const char *what, const char *text,
                       struct tracking_error *error);
void filter_lexer_finish(struct filter_lexer *lexer);

/* Moves to the next token; false with INVALID_PARAMETER_VALUE if the text there is no token. */
bool filter_lexer_next(struct filter_lexer *lexer, struct tracking_error *error);

/* Whether the token is this word, ignoring case, or this operator or mark. */
bool filter_token_is(const struct filter_lexer *lexer, const char *word);

/* Fails with INVALID_PARAMETER_VALUE: the place of the token, and the text that was expected there. */
bool filter_expected(const struct filter_lexer *lexer, const char *expected, struct tracking_error *error);

#endif
