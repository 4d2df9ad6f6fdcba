/* SPDX-License-Identifier: Apache-2.0 */
/* A contract under test: its order and job, and the launch file that was written from it. */
#ifndef TESTS_CONTRACT_RIG_H
#define TESTS_CONTRACT_RIG_H

#include <check.h>

#include "agent/launch/contract.h"
#include "proto/base/text/text.h"

/* A launch file, and the contract that it was written from. */
struct written {
    struct order order;
    struct job_spec spec;
    struct contract contract;
    struct text launch;
};

/* The second of two nodes with two ranks each; members are those of the spec, with ' for ". */
struct written *written_begin(const char *members);
void written_end(struct written *written);

/* Writes it with what an order says of tracking. */
void written_track(struct written *written);
/* Puts a variable into the spec that no spec may name. */
void written_smuggle(struct written *written, const char *name);

/* The value of a variable in the section of a rank (-1: those of all ranks); NULL when it is not there. Fails
 * when it is there twice. */
const char *written_variable(const struct written *written, int64_t rank, const char *name);
void written_assert(const struct written *written, int64_t rank, const char *name, const char *expected,
                    int line);
#define assert_all(name, expected)        written_assert(written, -1, name, expected, __LINE__)
#define assert_rank(rank, name, expected) written_assert(written, rank, name, expected, __LINE__)
#define assert_none(rank, name)           ck_assert_ptr_null(written_variable(written, rank, name))

/* The first word of what is started. */
const char *written_argument(const struct written *written);

#endif
