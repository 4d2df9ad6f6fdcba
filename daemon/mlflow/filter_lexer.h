/* SPDX-License-Identifier: Apache-2.0 */
/* The words of MLflow's search language. */
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
    char *text; /* without the quotes, doubled ones made one; owned by the lexer until it goes on */
    size_t at;  /* of its first character, from 1 */
    bool glued; /* nothing stands between it and the one before */
};

struct filter_lexer {
    const char *what; /* "filter" or "order_by", for errors */
    const char *all;
    const char *rest;
    struct filter_token token; /* the one that is looked at */
};

/* Stands on the first token afterwards. text stays the caller's and must stay. */
bool filter_lexer_init(struct filter_lexer *lexer, const char *what, const char *text,
                       struct tracking_error *error);
void filter_lexer_finish(struct filter_lexer *lexer);

/* Goes to the next token; false with INVALID_PARAMETER_VALUE for what is none. */
bool filter_lexer_next(struct filter_lexer *lexer, struct tracking_error *error);

/* Whether the token is this word, in any case, or this operator or mark. */
bool filter_token_is(const struct filter_lexer *lexer, const char *word);

/* INVALID_PARAMETER_VALUE with the place of the token and what was expected there. */
bool filter_expected(const struct filter_lexer *lexer, const char *expected, struct tracking_error *error);

#endif
