/* SPDX-License-Identifier: Apache-2.0 */
/* swarm: runs many seeds of the simulator in parallel, or one of them again. Seeds run in worker processes,
 * so an abort counts as a finding and does not stop the other workers. */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/sim/planted.h"
#include "tests/sim/run.h"

#define SEEDS_A_PROCESS 20 /* a process costs little compared with so many runs, and an abort loses few */
#define JOBS_MAX        64

struct options {
    uint64_t first, last;
    int64_t jobs;
    bool one, tracing, replay, each_planted;
    enum planted planted;
};

struct totals {
    int64_t seeds, faults, checks, violations;
    double simulated_s;
    struct verdict first; /* the first violation, if one is enough */
};

/* A worker process, and its seeds. */
struct worker {
    pid_t pid;
    int pipe;
    uint64_t next, last; /* seeds without a verdict */
    char *errors;        /* file with its stderr */
};

static int usage(FILE *out)
{
    fprintf(out, "usage: swarm --seeds A..B [--jobs N] [--planted NAME] [--replay]\n"
                 "       swarm --seed N [--planted NAME] [--trace]\n"
                 "       swarm --planted all [--seeds A..B] [--jobs N]\n"
                 "Runs a whole cluster in simulated time, with faults, once for each seed. The last line is\n"
                 "`N seeds, F faults, V violations`. A seed that violated something is named, and replays "
                 "with --seed;\n"
                 "--trace shows all that happened. --replay runs each seed twice and compares. --planted "
                 "makes the product\n"
                 "wrong on purpose; with all, each known way in turn, until a seed finds it.\n");
    return out == stdout ? 0 : 2;
}

/* --- verdicts ------------------------------------------------------------------------------------------- */

static void print_verdict(const struct verdict *verdict)
{
    printf("seed %llu: hash %016llx, %lld faults, %lld checks, %lld jobs, %.0f s simulated%s%s\n",
           (unsigned long long)verdict->seed, (unsigned long long)verdict->hash, (long long)verdict->faults,
           (long long)verdict->checks, (long long)verdict->jobs, (double)verdict->simulated_ms / 1000,
           verdict->violated ? ": VIOLATED " : "", verdict->violated ? verdict->violation : "");
    fflush(stdout);
}

static void count_verdict(struct totals *totals, const struct verdict *verdict)
{
    totals->seeds++;
    totals->faults += verdict->faults;
    totals->checks += verdict->checks;
    totals->simulated_s += (double)verdict->simulated_ms / 1000;
    totals->violations += verdict->violated;
    if (verdict->violated && !totals->first.violated) {
        totals->first = *verdict;
    }
}

/* A second run with another result is a violation, too. */
static void run_and_compare(uint64_t seed, const char *folder, bool replay, struct verdict *ret_verdict)
{
    struct verdict again;
    run_seed(seed, folder, false, ret_verdict);
    if (!replay || ret_verdict->violated) {
        return;
    }
    run_seed(seed, folder, false, &again);
    if (again.hash != ret_verdict->hash) {
        ret_verdict->violated = true;
        snprintf(ret_verdict->violation, sizeof ret_verdict->violation,
                 "replay: the second run has the hash %016llx", (unsigned long long)again.hash);
    }
}

/* --- workers -------------------------------------------------------------------------------------------- */

static _Noreturn void work(const struct options *options, const struct worker *worker, int to)
{
    if (freopen(worker->errors, "w", stderr) == NULL) {
        _exit(1);
    }
    char folder[] = "/dev/shm/gpuctl-sim-XXXXXX";
    if (mkdtemp(folder) == NULL) {
        _exit(1);
    }
    for (uint64_t seed = worker->next; seed <= worker->last; seed++) {
        struct verdict verdict;
        run_and_compare(seed, folder, options->replay, &verdict);
        if (write(to, &verdict, sizeof verdict) != (ssize_t)sizeof verdict) {
            _exit(1);
        }
    }
    struct err err;
    _exit(file_remove_tree(folder, &err) ? 0 : 1);
}

static void start_worker(const struct options *options, struct worker *worker, uint64_t first, uint64_t last)
{
    int ends[2];
    *worker = (struct worker){.next = first, .last = last};
    worker->errors = xprintf("/dev/shm/gpuctl-sim-%d-%llu", (int)getpid(), (unsigned long long)first);
    fflush(stdout);
    if (pipe(ends) != 0 || (worker->pid = fork()) < 0) {
        perror("swarm");
        exit(1);
    }
    if (worker->pid == 0) {
        close(ends[0]);
        work(options, worker, ends[1]);
    }
    close(ends[1]);
    worker->pipe = ends[0];
}

/* Reports the worker's last line of stderr, which names the reason of an abort. */
static void blame(const struct worker *worker, struct verdict *ret_verdict)
{
    struct err err;
    autofree char *text = NULL;
    *ret_verdict = (struct verdict){.seed = worker->next, .violated = true};
    const char *last = "the process ended";
    if (file_read(worker->errors, 16 * 1024 * 1024, &text, NULL, &err)) {
        size_t length = strlen(text);
        while (length > 0 && text[length - 1] == '\n') {
            text[--length] = '\0';
        }
        const char *line = strrchr(text, '\n');
        last = line != NULL ? line + 1 : text;
    }
    snprintf(ret_verdict->violation, sizeof ret_verdict->violation, "aborted: %s", last);
}

/* true: the worker is done. */
static bool read_worker(struct worker *worker, struct verdict *ret_verdict, bool *ret_verdict_there)
{
    ssize_t length =
        read(worker->pipe, ret_verdict, sizeof *ret_verdict); /* less than PIPE_BUF, so complete or nothing */
    bool whole = length == (ssize_t)sizeof *ret_verdict;
    *ret_verdict_there = whole || worker->next <= worker->last;
    if (whole) {
        worker->next = ret_verdict->seed + 1;
    } else if (*ret_verdict_there) {
        blame(worker, ret_verdict);
    }
    return !whole;
}

static void end_worker(struct worker *worker)
{
    int status;
    kill(worker->pid, SIGKILL);
    waitpid(worker->pid, &status, 0);
    close(worker->pipe);
    unlink(worker->errors);
    free(worker->errors);
    worker->pid = 0;
}

static int wait_for_any(struct worker *workers, int64_t count)
{
    fd_set readable;
    FD_ZERO(&readable);
    int highest = -1;
    for (int64_t i = 0; i < count; i++) {
        if (workers[i].pid != 0) {
            FD_SET(workers[i].pipe, &readable);
            highest = workers[i].pipe > highest ? workers[i].pipe : highest;
        }
    }
    if (highest < 0 || select(highest + 1, &readable, NULL, NULL, NULL) <= 0) {
        return -1;
    }
    for (int64_t i = 0; i < count; i++) {
        if (workers[i].pid != 0 && FD_ISSET(workers[i].pipe, &readable)) {
            return (int)i;
        }
    }
    return -1;
}

/* Gives an idle worker the next seeds; false: there are none. */
static bool give_work(const struct options *options, struct worker *worker, uint64_t *next)
{
    if (*next > options->last) {
        return false;
    }
    uint64_t last = *next + SEEDS_A_PROCESS - 1 < options->last ? *next + SEEDS_A_PROCESS - 1 : options->last;
    start_worker(options, worker, *next, last);
    *next = last + 1;
    return true;
}

/* enough: ends with the first violation; otherwise all are printed. */
static void run_swarm(const struct options *options, bool enough, struct totals *ret_totals)
{
    struct worker workers[JOBS_MAX] = {0};
    uint64_t next = options->first;
    *ret_totals = (struct totals){0};
    for (int64_t i = 0; i < options->jobs; i++) {
        give_work(options, &workers[i], &next);
    }
    for (int which; (which = wait_for_any(workers, options->jobs)) >= 0;) {
        struct worker *worker = &workers[which];
        struct verdict verdict;
        bool there, over = read_worker(worker, &verdict, &there);
        if (there) {
            count_verdict(ret_totals, &verdict);
        }
        if (there && verdict.violated && !enough) {
            print_verdict(&verdict);
        }
        if (ret_totals->violations > 0 && enough) {
            break;
        }
        if (over) {
            struct worker ended = *worker;
            end_worker(worker);
            if (ended.next < ended.last) {
                start_worker(options, worker, ended.next + 1, ended.last);
            } else {
                give_work(options, worker, &next);
            }
        }
    }
    for (int64_t i = 0; i < options->jobs; i++) {
        if (workers[i].pid != 0) {
            end_worker(&workers[i]);
        }
    }
}

/* --- the ways to run ------------------------------------------------------------------------------------ */

static int run_one(const struct options *options)
{
    char folder[] = "/dev/shm/gpuctl-sim-XXXXXX";
    struct verdict verdict;
    struct err err;
    if (mkdtemp(folder) == NULL) {
        perror("swarm");
        return 1;
    }
    run_seed(options->first, folder, options->tracing, &verdict);
    print_verdict(&verdict);
    file_remove_tree(folder, &err);
    printf("1 seeds, %lld faults, %d violations\n", (long long)verdict.faults, verdict.violated);
    return verdict.violated;
}

static int run_many(const struct options *options)
{
    struct totals totals;
    run_swarm(options, false, &totals);
    printf("%lld checks, %.0f hours simulated\n", (long long)totals.checks, totals.simulated_s / 3600);
    printf("%lld seeds, %lld faults, %lld violations\n", (long long)totals.seeds, (long long)totals.faults,
           (long long)totals.violations);
    return totals.violations > 0;
}

static int run_planted(const struct options *options)
{
    int found = 0;
    for (int planted = PLANTED_NONE + 1; planted < PLANTED_COUNT; planted++) {
        struct totals totals;
        planted_set((enum planted)planted);
        run_swarm(options, true, &totals);
        found += totals.violations > 0;
        printf("%-20s %s\n    ", planted_name((enum planted)planted), planted_what((enum planted)planted));
        if (totals.violations > 0) {
            printf("found by seed %llu, the %lldth that ended: %s\n", (unsigned long long)totals.first.seed,
                   (long long)totals.seeds, totals.first.violation);
        } else {
            printf("NOT FOUND in %lld seeds\n", (long long)totals.seeds);
        }
    }
    printf("%d/%d planted bugs found\n", found, PLANTED_COUNT - 1);
    return found != PLANTED_COUNT - 1;
}

/* --- the command line ----------------------------------------------------------------------------------- */

static bool read_range(const char *text, struct options *options)
{
    char *end;
    options->first = strtoull(text, &end, 10);
    if (strncmp(end, "..", 2) != 0) {
        return false;
    }
    options->last = strtoull(end + 2, &end, 10);
    return *end == '\0' && options->first >= 1 && options->first <= options->last;
}

static bool read_planted(const char *text, struct options *options)
{
    options->each_planted = strcmp(text, "all") == 0;
    for (int planted = 0; planted < PLANTED_COUNT && !options->each_planted; planted++) {
        if (strcmp(planted_name((enum planted)planted), text) == 0) {
            options->planted = (enum planted)planted;
            return true;
        }
    }
    return options->each_planted;
}

static bool read_option(int option, struct options *options)
{
    switch (option) {
    case 's':
        return read_range(optarg, options);
    case 'o':
        options->one = true;
        options->first = options->last = strtoull(optarg, NULL, 10);
        return options->first >= 1;
    case 'j':
        options->jobs = atoll(optarg);
        return options->jobs >= 1 && options->jobs <= JOBS_MAX;
    case 'p':
        return read_planted(optarg, options);
    case 't':
        return options->tracing = true;
    case 'r':
        return options->replay = true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"seeds", required_argument, NULL, 's'}, {"seed", required_argument, NULL, 'o'},
        {"jobs", required_argument, NULL, 'j'},  {"planted", required_argument, NULL, 'p'},
        {"trace", no_argument, NULL, 't'},       {"replay", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},        {0},
    };
    struct options options = {.first = 1, .last = 1000, .jobs = sysconf(_SC_NPROCESSORS_ONLN)};
    int option;
    mallopt(M_TRIM_THRESHOLD, 1 << 30); /* runs are many, and each reuses the memory of the one before */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD); /* each process has a single thread */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 1200, 200); /* each opening parses all statements */
    options.jobs = options.jobs < JOBS_MAX ? options.jobs : JOBS_MAX;
    while ((option = getopt_long(argc, argv, "", names, NULL)) >= 0) {
        if (option == 'h') {
            return usage(stdout);
        }
        if (!read_option(option, &options)) {
            return usage(stderr);
        }
    }
    if (optind != argc || argc == 1) {
        return usage(stderr);
    }
    planted_set(options.planted);
    if (options.one) {
        return run_one(&options);
    }
    return options.each_planted ? run_planted(&options) : run_many(&options);
}
