/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that live in the simulated cluster. Every new process and every grant is checked against all
 * of them. */
#include "tests/sim/world/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "proto/base/text/text.h"

#define DEVICES_MAX 16

struct process {
    uint64_t attempt_id;
    char job_id[17];
    size_t host;
    int64_t rank;
    int64_t devices[DEVICES_MAX];
    size_t device_count;
};

struct ended {
    struct {
        uint64_t attempt_id;
        int64_t rank;
    } key;
    int64_t code;
    bool by_us;
    UT_hash_handle hh;
};

struct gang {
    uint64_t attempt_id;
    uint64_t prepared; /* a bit for each node rank */
    UT_hash_handle hh;
};

struct over {
    char job_id[17];
    UT_hash_handle hh;
};

struct truth {
    struct world *world;
    struct process *live;
    size_t count, room;
    struct ended *ended;
    struct gang *gangs;
    struct over *over;
};

struct truth *truth_create(struct world *world)
{
    struct truth *truth = xzalloc(sizeof *truth);
    truth->world = world;
    return truth;
}

void truth_destroy(struct truth *truth)
{
    struct ended *ended, *next_ended;
    struct gang *gang, *next_gang;
    struct over *over, *next_over;
    HASH_ITER (hh, truth->ended, ended, next_ended) {
        HASH_DEL(truth->ended, ended);
        free(ended);
    }
    HASH_ITER (hh, truth->gangs, gang, next_gang) {
        HASH_DEL(truth->gangs, gang);
        free(gang);
    }
    HASH_ITER (hh, truth->over, over, next_over) {
        HASH_DEL(truth->over, over);
        free(over);
    }
    free(truth->live);
    free(truth);
}

static struct gang *gang_of(struct truth *truth, uint64_t attempt_id)
{
    struct gang *gang;
    HASH_FIND(hh, truth->gangs, &attempt_id, sizeof attempt_id, gang);
    if (gang == NULL) {
        gang = xzalloc(sizeof *gang);
        gang->attempt_id = attempt_id;
        HASH_ADD(hh, truth->gangs, attempt_id, sizeof gang->attempt_id, gang);
    }
    return gang;
}

void truth_prepared(struct truth *truth, const struct truth_gang *gang, int64_t node_rank)
{
    gang_of(truth, gang->attempt_id)->prepared |= 1ULL << node_rank;
}

static bool share_device(const struct process *process, const int64_t *devices, size_t count)
{
    for (size_t i = 0; i < process->device_count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (process->devices[i] == devices[j]) {
                return true;
            }
        }
    }
    return false;
}

/* Checks that no other attempt of the job lives, and that no other attempt uses the devices. */
static void check_alone(struct truth *truth, const char *what, uint64_t attempt_id, const char *job_id,
                        size_t host, const int64_t *devices, size_t device_count)
{
    for (size_t i = 0; i < truth->count; i++) {
        const struct process *process = &truth->live[i];
        if (process->attempt_id == attempt_id) {
            continue;
        }
        world_check(truth->world, strcmp(process->job_id, job_id) != 0, what,
                    "attempt %llx of job %s, while rank %lld of its attempt %llx lives on host %zu",
                    (unsigned long long)attempt_id, job_id, (long long)process->rank,
                    (unsigned long long)process->attempt_id, process->host);
        world_check(truth->world, process->host != host || !share_device(process, devices, device_count),
                    what,
                    "attempt %llx of job %s on a device of host %zu that rank %lld of attempt %llx uses",
                    (unsigned long long)attempt_id, job_id, host, (long long)process->rank,
                    (unsigned long long)process->attempt_id);
    }
}

static void add(struct truth *truth, const struct process *process)
{
    if (truth->count == truth->room) {
        truth->room = truth->room ? 2 * truth->room : 64;
        truth->live = xrealloc(truth->live, truth->room * sizeof *truth->live);
    }
    truth->live[truth->count++] = *process;
}

static bool lives(const struct truth *truth, uint64_t attempt_id, int64_t rank)
{
    for (size_t i = 0; i < truth->count; i++) {
        if (truth->live[i].attempt_id == attempt_id && truth->live[i].rank == rank) {
            return true;
        }
    }
    return false;
}

static bool is_over(const struct truth *truth, const char *job_id)
{
    struct over *over;
    HASH_FIND_STR(truth->over, job_id, over);
    return over != NULL;
}

void truth_start(struct truth *truth, const struct truth_gang *gang, size_t host, int64_t first_rank,
                 int64_t count, const int64_t *devices, size_t device_count)
{
    struct process process = {.attempt_id = gang->attempt_id, .host = host, .device_count = device_count};
    uint64_t all = gang->nodes >= 64 ? UINT64_MAX : (1ULL << gang->nodes) - 1;
    snprintf(process.job_id, sizeof process.job_id, "%s", gang->job_id);
    memcpy(process.devices, devices, device_count * sizeof *devices);
    check_alone(truth, "I2, I5", gang->attempt_id, gang->job_id, host, devices, device_count);
    world_check(truth->world, gang_of(truth, gang->attempt_id)->prepared == all, "I8",
                "ranks of attempt %llx start before all nodes are prepared",
                (unsigned long long)gang->attempt_id);
    world_check(truth->world, !is_over(truth, gang->job_id), "I10, I14", "job %s starts after it was over",
                gang->job_id);
    for (int64_t i = 0; i < count; i++) {
        struct ended *ended;
        struct ended wanted = {.key = {gang->attempt_id, first_rank + i}};
        HASH_FIND(hh, truth->ended, &wanted.key, sizeof wanted.key, ended);
        world_check(truth->world, ended == NULL && !lives(truth, gang->attempt_id, first_rank + i), "I5",
                    "rank %lld of attempt %llx starts a second time", (long long)(first_rank + i),
                    (unsigned long long)gang->attempt_id);
        process.rank = first_rank + i;
        add(truth, &process);
    }
}

static void keep_end(struct truth *truth, uint64_t attempt_id, int64_t rank, int64_t code, bool by_us)
{
    struct ended *ended = xzalloc(sizeof *ended);
    ended->key.attempt_id = attempt_id;
    ended->key.rank = rank;
    ended->code = code;
    ended->by_us = by_us;
    HASH_ADD(hh, truth->ended, key, sizeof ended->key, ended);
}

void truth_end(struct truth *truth, uint64_t attempt_id, size_t host, int64_t rank, int64_t code, bool by_us)
{
    for (size_t i = 0; i < truth->count; i++) {
        const struct process *process = &truth->live[i];
        if (process->attempt_id == attempt_id && process->host == host && process->rank == rank) {
            truth->live[i] = truth->live[--truth->count];
            keep_end(truth, attempt_id, rank, code, by_us);
            return;
        }
    }
}

void truth_host_died(struct truth *truth, size_t host)
{
    for (size_t i = truth->count; i > 0; i--) {
        struct process process = truth->live[i - 1];
        if (process.host == host) {
            truth_end(truth, process.attempt_id, host, process.rank, 137, true);
        }
    }
}

void truth_granted(struct truth *truth, uint64_t attempt_id, const char *job_id, size_t host,
                   const int64_t *devices, size_t device_count)
{
    check_alone(truth, "I6", attempt_id, job_id, host, devices, device_count);
}

void truth_over(struct truth *truth, const char *job_id)
{
    if (is_over(truth, job_id)) {
        return;
    }
    for (size_t i = 0; i < truth->count; i++) {
        world_check(truth->world, strcmp(truth->live[i].job_id, job_id) != 0, "I10",
                    "job %s is over while rank %lld of attempt %llx lives on host %zu", job_id,
                    (long long)truth->live[i].rank, (unsigned long long)truth->live[i].attempt_id,
                    truth->live[i].host);
    }
    struct over *over = xzalloc(sizeof *over);
    snprintf(over->job_id, sizeof over->job_id, "%s", job_id);
    HASH_ADD_STR(truth->over, job_id, over);
}

bool truth_exit(const struct truth *truth, uint64_t attempt_id, int64_t rank, int64_t *ret_code,
                bool *ret_by_us)
{
    struct ended *ended;
    struct ended wanted = {.key = {attempt_id, rank}};
    HASH_FIND(hh, truth->ended, &wanted.key, sizeof wanted.key, ended);
    if (ended != NULL) {
        *ret_code = ended->code;
        *ret_by_us = ended->by_us;
    }
    return ended != NULL;
}

size_t truth_live(const struct truth *truth)
{
    return truth->count;
}
