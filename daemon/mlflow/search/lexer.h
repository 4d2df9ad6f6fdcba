/* SPDX-License-Identifier: Apache-2.0 */
/* Splits MLflow's search language into tokens. */
#ifndef MLFLOW_LEXER_H
#define MLFLOW_LEXER_H

#include <stddef.h>

#include "daemon/mlflow/call/call.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,     /* metrics.loss, AND, 0.5 */
    TOKEN_NAME,     /* in backticks */
    TOKEN_EITHER,   /* in double quotes: a name or a text */
    TOKEN_TEXT,     /* in single quotes */
    TOKEN_OPERATOR, /* = != < <= > >= */
    TOKEN_MARK,     /* ( ) , */
};

struct lexer {
    struct call *call;
    const char *what; /* "filter" or "order_by", for errors */
    const char *all;
    const char *rest;
    /* The current token. */
    enum token_kind kind;
    char *text; /* without quotes, doubled ones as one; owned until the next token */
    size_t at;  /* of its first character, from 1 */
    bool glued; /* nothing stands between this token and the previous one */
};

/* Moves to the first token. The caller owns text and keeps it valid. */
void lexer_init(struct lexer *lexer, struct call *call, const char *what, const char *text);
void lexer_finish(struct lexer *lexer);

/* Moves to the next token. If the text there is no token, the call fails. A failed call is at TOKEN_END. */
void lexer_next(struct lexer *lexer);

/* Whether the token is this word, ignoring case, or this operator or mark. */
bool lexer_is(const struct lexer *lexer, const char *word);
/* Moves past the token if it is this one. */
bool lexer_skip(struct lexer *lexer, const char *word);

/* Fails the call: the place of the token, and the text that was expected there. */
void lexer_expected(struct lexer *lexer, const char *expected);

#endif
