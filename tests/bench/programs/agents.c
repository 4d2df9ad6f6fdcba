/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated agents for the rows `park`, `scale` and `wide`: reads commands from stdin, one a line, and
 * answers each with one line of JSON on stdout once it is done; between commands the agents go on. Every
 * answer has all counts, and when it was done by the clock of the boot, in microseconds.
 *
 *     bench-agents PORT TOKEN-FILE NODES SLOTS plain|tls
 *
 *     register         all nodes
 *     park SPREAD_MS   until all have a poll parked
 *     lost             until none has
 *     told             until all were told to end
 *     ended COUNT      until so many attempts have ended in all
 *     hold COUNT       ranks run on from now on; until so many run
 *     exit COUNT       ends so many attempts one after the other; the answer has also, as p50 and p99 in
 *                      microseconds, how long until the exit was taken, and until the next order had come */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/bench/programs/fleet.h"

#define LINE_BYTES 64

enum command { NOTHING, REGISTER, PARK, LOST, TOLD, ENDED, HOLD, EXIT };

struct bench {
    struct fleet *fleet;
    size_t nodes;
    enum command command; /* that is being done */
    int64_t amount;       /* of the command */
};

/* Each agent is a descriptor, and so is each of its connections for the controller. */
static void raise_limit(size_t nodes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_max < nodes + 128) {
            fprintf(stderr, "%zu agents need %zu descriptors, the hard limit is %ju\n", nodes, nodes + 128,
                    (uintmax_t)limit.rlim_max);
            exit(1);
        }
    }
}

static bool is_done(const struct bench *bench)
{
    const struct fleet_counts *counts = fleet_counts(bench->fleet);
    switch (bench->command) {
    case NOTHING:
        return false;
    case REGISTER:
        return counts->registered >= bench->nodes;
    case PARK:
        return counts->parked == bench->nodes;
    case LOST:
        return counts->parked == 0;
    case TOLD:
        return counts->told == bench->nodes;
    case ENDED:
        return counts->ended >= (uint64_t)bench->amount;
    case HOLD:
        return counts->running >= (size_t)bench->amount;
    case EXIT:
        return fleet_exits_left(bench->fleet) == 0;
    }
    return false;
}

static void say_exits(const struct bench *bench)
{
    const struct fleet_exits exits = fleet_exits(bench->fleet);
    if (exits.count > 0) {
        const size_t middle = exits.count / 2, late = exits.count * 99 / 100;
        printf(", \"taken_us\": [%" PRId64 ", %" PRId64 "], \"placed_us\": [%" PRId64 ", %" PRId64 "]",
               exits.taken_us[middle], exits.taken_us[late], exits.placed_us[middle], exits.placed_us[late]);
    }
}

static void say(const struct bench *bench)
{
    const struct fleet_counts *counts = fleet_counts(bench->fleet);
    printf("{\"at_us\": %" PRId64 ", \"registered\": %zu, \"parked\": %zu, \"told\": %zu, \"ended\": %" PRIu64
           ", \"running\": %zu, \"beats\": %" PRIu64 ", \"polls\": %" PRIu64 ", \"lost\": %" PRIu64,
           clock_boot_us(), counts->registered, counts->parked, counts->told, counts->ended, counts->running,
           counts->heartbeats, counts->polls, counts->lost);
    say_exits(bench);
    printf("}\n");
    fflush(stdout);
}

static bool begin(struct bench *bench, char *line)
{
    static const char *const names[] = {
        [REGISTER] = "register", [PARK] = "park", [LOST] = "lost", [TOLD] = "told",
        [ENDED] = "ended",       [HOLD] = "hold", [EXIT] = "exit"};
    char *rest = line;
    const char *word = strsep(&rest, " \n");
    for (enum command command = REGISTER; command <= EXIT; command++) {
        if (strcmp(word, names[command]) == 0) {
            bench->command = command;
            bench->amount = rest != NULL ? strtoll(rest, NULL, 10) : 0;
            if (command == REGISTER) {
                fleet_register(bench->fleet);
            } else if (command == PARK) {
                fleet_park(bench->fleet, bench->amount);
            } else if (command == HOLD) {
                fleet_hold(bench->fleet);
            } else if (command == EXIT) {
                fleet_exit(bench->fleet, (size_t)bench->amount);
            }
            return true;
        }
    }
    return false;
}

/* One command at a time: the next is sent after the answer. False: the end of the input. */
static bool take_command(struct bench *bench)
{
    char line[LINE_BYTES];
    ssize_t got = read(STDIN_FILENO, line, sizeof line - 1);
    if (got <= 0) {
        return false;
    }
    line[got] = '\0';
    if (!begin(bench, line)) {
        fprintf(stderr, "no command: %s", line);
        exit(2);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct err err;
    char *token;
    int64_t port, nodes, slots;
    if (argc != 6 || !text_to_int(argv[1], 1, 65535, &port) || !text_to_int(argv[3], 1, 100000, &nodes) ||
        !text_to_int(argv[4], 1, 64, &slots) || !file_read(argv[2], 4096, &token, NULL, &err)) {
        fprintf(stderr, "usage: bench-agents PORT TOKEN-FILE NODES SLOTS plain|tls\n");
        return 2;
    }
    token[strcspn(token, "\r\n")] = '\0';
    raise_limit((size_t)nodes);
    signal(SIGPIPE, SIG_IGN); /* TLS writes without MSG_NOSIGNAL */
    struct bench bench = {.nodes = (size_t)nodes};
    bench.fleet = fleet_create((int)port, token, strcmp(argv[5], "tls") == 0, bench.nodes, slots);
    for (bool more = true; more;) {
        if (fleet_run(bench.fleet)) {
            more = take_command(&bench);
        }
        if (is_done(&bench)) {
            bench.command = NOTHING;
            say(&bench);
        }
    }
    fleet_destroy(bench.fleet);
    free(token);
    return 0;
}
