/* SPDX-License-Identifier: Apache-2.0 */
/* What is fuzzed: functions that read what others send or write. Each takes bytes, checks what must hold of
 * the outcome, and ends the process where it does not. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base/err.h"

/* X(NAME): fuzz_NAME, with seeds in corpus/NAME. */
#define FUZZ_TARGETS(X)                                                                                      \
    X(account_limits)                                                                                        \
    X(batch)                                                                                                 \
    X(filter)                                                                                                \
    X(head)                                                                                                  \
    X(id_token)                                                                                              \
    X(ignore)                                                                                                \
    X(issuer)                                                                                                \
    X(jobfile)                                                                                               \
    X(jobspec)                                                                                               \
    X(launch)                                                                                                \
    X(log_pattern)                                                                                           \
    X(mcp)                                                                                                   \
    X(message)                                                                                               \
    X(metric_line)                                                                                           \
    X(order_by)                                                                                              \
    X(problem)                                                                                               \
    X(query)                                                                                                 \
    X(record)                                                                                                \
    X(requirements)                                                                                          \
    X(settings)                                                                                              \
    X(sse)                                                                                                   \
    X(staging)                                                                                               \
    X(trace_context)                                                                                         \
    X(view)                                                                                                  \
    X(yaml)

/* Returns whether the bytes are what the function reads, and not refused. */
#define FUZZ_DECLARE(name) bool fuzz_##name(const uint8_t *bytes, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)
/* Ends the process by some inputs: a fuzzer that does not find them finds nothing. */
FUZZ_DECLARE(planted)
#undef FUZZ_DECLARE

/* Ends the process unless the condition holds. */
#define FUZZ_MUST(condition)                                                                                 \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* A refusal says why. */
#define FUZZ_REFUSED(err) FUZZ_MUST((err).text[0] != '\0')

/* The bytes as a text of its own, with a NUL where they end. The caller frees it. */
char *fuzz_text(const uint8_t *bytes, size_t size);

#endif
