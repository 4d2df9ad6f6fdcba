/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of the audit, computed again from the newest row back. */
#ifndef CLI_AUDIT_CHAIN_H
#define CLI_AUDIT_CHAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"
#include "proto/wire/views.h"

/* Begins as {0}; finished in any case. */
struct audit_chain {
    struct audit_view newer;  /* the row looked at last; json NULL: none yet */
    int64_t count, head_seq;  /* head_seq 0: none is wanted */
    char head[HASH_HEX + 32]; /* of the newest row, as people note it: SEQ:HASH */
    const char *head_hash;
    bool head_seen;
};

/* Reads an earlier head, that of a row which must be there; NULL: none. The text is borrowed. ERR_USAGE. */
bool audit_chain_read_head(const char *text, struct audit_chain *chain, struct err *err);

/* Looks at the next older row, or at those of an export, a row a line. ERR_DAMAGED: the row was changed, or
 * is not the next one. ERR_FIELD and ERR_MALFORMED: it is none. */
bool audit_chain_take(struct audit_chain *chain, const json_t *json, struct err *err);
bool audit_chain_take_file(struct audit_chain *chain, FILE *file, struct err *err);

/* After the oldest row. ERR_DAMAGED: row 1 was changed, or the row of the head is not there. */
bool audit_chain_end(const struct audit_chain *chain, struct err *err);
void audit_chain_finish(struct audit_chain *chain);

#endif
