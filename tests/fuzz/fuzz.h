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
    X(agent_config)                                                                                          \
    X(answer)                                                                                                \
    X(audit)                                                                                                 \
    X(batch)                                                                                                 \
    X(client_value)                                                                                          \
    X(controller_config)                                                                                     \
    X(credential)                                                                                            \
    X(cron)                                                                                                  \
    X(database)                                                                                              \
    X(documents)                                                                                             \
    X(filter)                                                                                                \
    X(head)                                                                                                  \
    X(id_token)                                                                                              \
    X(ignore)                                                                                                \
    X(issuer)                                                                                                \
    X(jobfile)                                                                                               \
    X(jobspec)                                                                                               \
    X(checkpoint)                                                                                            \
    X(kept_files)                                                                                            \
    X(launch)                                                                                                \
    X(log_index)                                                                                             \
    X(log_pattern)                                                                                           \
    X(login)                                                                                                 \
    X(manifest)                                                                                              \
    X(mcp)                                                                                                   \
    X(message)                                                                                               \
    X(metric_line)                                                                                           \
    X(order_by)                                                                                              \
    X(problem)                                                                                               \
    X(query)                                                                                                 \
    X(rank_lines)                                                                                            \
    X(record)                                                                                                \
    X(requirements)                                                                                          \
    X(s3_answer)                                                                                             \
    X(s3_credentials)                                                                                        \
    X(sample_ring)                                                                                           \
    X(settings)                                                                                              \
    X(sse)                                                                                                   \
    X(staging)                                                                                               \
    X(stream)                                                                                                \
    X(trace)                                                                                                 \
    X(trace_context)                                                                                         \
    X(tracking)                                                                                              \
    X(value)                                                                                                 \
    X(vault)                                                                                                 \
    X(view)                                                                                                  \
    X(webhook_url)                                                                                           \
    X(yaml)                                                                                                  \
    X(zone)

/* Those whose executions are slow: SLOW(NAME, N) gets an N-th of the executions that are asked for. */
#define FUZZ_SLOW_TARGETS(SLOW)                                                                              \
    SLOW(agent_config, 5) SLOW(controller_config, 5) SLOW(database, 50) SLOW(log_index, 5)

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

/* Cuts the first line off; NULL: there is no line end. The caller frees it. */
char *fuzz_line(const uint8_t **bytes, size_t *size);

/* A folder in memory, if there is such a place: the same for all executions, and gone after them. */
const char *fuzz_folder(void);
/* Writes the bytes to NAME in it; the path is valid until the next call. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size);

#endif
