/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's command line. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/base/config.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/unit/agent/agent_suites.h"

/* With two options, the second of which may be none. */
static bool try_with(const char *option, const char *value, const char *second, const char *second_value,
                     struct config *ret_config)
{
    struct err err = {0};
    bool done;
    char *words[] = {(char[]){"gpuagent"},
                     (char[]){"--controller"},
                     (char[]){"http://127.0.0.1:1"},
                     (char[]){"--token-file"},
                     (char[]){"token"},
                     (char[]){"--cpu-slots"},
                     (char[]){"1"},
                     (char *)(uintptr_t)option,
                     (char *)(uintptr_t)value,
                     (char *)(uintptr_t)second,
                     (char *)(uintptr_t)second_value,
                     NULL};
    return config_read(second != NULL ? 11 : 9, words, ret_config, &done, &err);
}

static void read_with(const char *option, const char *value, struct config *ret_config)
{
    ck_assert(try_with(option, value, "--run-as", "agent", ret_config)); /* any folder will do */
}

/* M9: ranks have another working folder than the agent. */
static const struct {
    const char *option, *given;
    bool below_here; /* else it stays as it is */
} paths[] = {
    {"--cacert", "cert.pem", true},
    {"--cacert", "/etc/cert.pem", false},
    {"--python", "bin/python", true},
    {"--python", "/usr/bin/python", false},
    {"--python", "python3.11", false},
    {"--state", "state", true},
    {"--run", "run", true},
    {"--environments", "built", true},
};

static const char *value_of(const struct config *config, const char *option)
{
    return strcmp(option, "--cacert") == 0   ? config->cacert
           : strcmp(option, "--python") == 0 ? config->python
           : strcmp(option, "--state") == 0  ? config->state
           : strcmp(option, "--run") == 0    ? config->run
                                             : config->environments;
}

START_TEST(paths_that_others_use_hold_for_every_working_folder)
{
    struct config config;
    autofree char *here = getcwd(NULL, 0);
    autofree char *below = xprintf("%s/%s", here, paths[_i].given);
    read_with(paths[_i].option, paths[_i].given, &config);
    ck_assert_str_eq(value_of(&config, paths[_i].option), paths[_i].below_here ? below : paths[_i].given);
    config_finish(&config);
}
END_TEST

/* S6: only who says so has jobs run as root. */
static const struct {
    bool root;
    const char *given; /* NULL: nothing */
    bool as_owner, refused;
} users[] = {
    {true, NULL, true, false},   {true, "owner", true, false},  {true, "agent", false, false},
    {false, NULL, false, false}, {false, "owner", false, true}, {false, "agent", false, false},
};

START_TEST(jobs_of_an_agent_of_root_run_as_their_owners_unless_it_says_otherwise)
{
    bool root = geteuid() == 0;
    if (!users[_i].root && root) {
        ck_assert_int_eq(seteuid(65534), 0);
    }
    if (users[_i].root == (geteuid() == 0)) {
        struct config config;
        const char *given = users[_i].given;
        bool refused = !try_with("--state", "/state", given != NULL ? "--run-as" : NULL, given, &config);
        ck_assert_int_eq(refused, users[_i].refused);
        if (!refused) {
            ck_assert_int_eq(config.as_owner, users[_i].as_owner);
            ck_assert_int_eq(config.seccomp, users[_i].as_owner);
            config_finish(&config);
        }
    }
    if (root) { /* the leak sanitizer looks at its own process */
        ck_assert_int_eq(seteuid(0), 0);
        prctl(PR_SET_DUMPABLE, 1);
    }
}
END_TEST

/* M2: nobody lingers, so logind removes its folder below /run/user when nobody logs out. */
static const struct {
    const char *runtime, *run;
} runtimes[] = {
    {"/run/user/65534", "/state/run"},
    {"/var/lib/runtime", "/var/lib/runtime/gpuctl-"},
};

START_TEST(the_run_folder_of_an_ordinary_user_outlives_the_last_logout)
{
    struct config config;
    if (geteuid() == 0) {
        ck_assert_int_eq(seteuid(65534), 0);
    }
    setenv("XDG_RUNTIME_DIR", runtimes[_i].runtime, 1);
    read_with("--state", "/state", &config);
    ck_assert_ptr_nonnull(strstr(config.run, runtimes[_i].run));
    config_finish(&config);
    if (getuid() == 0) { /* the leak sanitizer looks at its own process */
        ck_assert_int_eq(seteuid(0), 0);
        prctl(PR_SET_DUMPABLE, 1);
    }
}
END_TEST

/* --- jobs of Slurm, and nodes that come for a while ----------------------------------------------------- */

START_TEST(what_slurm_says_of_its_job_holds_unless_an_option_says_otherwise)
{
    struct config config;
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("SLURMD_NODENAME", "gpu7", 1);
    setenv("SLURM_JOB_END_TIME", "4102444800", 1); /* 2100 */
    setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
    read_with("--idle-exit", "5m", &config);
    ck_assert_int_eq(config.idle_exit_ms, 300000);
    ck_assert_int_eq(config.expires_at_ms, 4102444800000);
    ck_assert_str_eq(config.devices, "2,3");
    ck_assert_str_ne(config.name, "gpu7-4711"); /* only an ephemeral node has another at its side */
    config_finish(&config);
    read_with("--devices", "0", &config);
    ck_assert_str_eq(config.devices, "0");
    config_finish(&config);
    read_with("--expires-at", "2099-01-01T00:00:00Z", &config);
    ck_assert_int_eq(config.expires_at_ms, 4070908800000);
    config_finish(&config);
    setenv("SLURM_JOB_END_TIME", "1000", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    read_with("--pool", "p", &config);
    ck_assert_int_eq(config.expires_at_ms, 0);
    ck_assert_str_eq(config.devices, "none"); /* all are those of others, too */
    config_finish(&config);
    setenv("CUDA_VISIBLE_DEVICES", "NoDevFiles", 1);
    read_with("--pool", "p", &config);
    ck_assert_str_eq(config.devices, "none");
    config_finish(&config);
}
END_TEST

static bool try_ephemeral(const char *option, const char *value, struct config *ret_config)
{
    struct err err = {0};
    bool done;
    char *words[] = {(char[]){"gpuagent"},
                     (char[]){"--controller"},
                     (char[]){"http://127.0.0.1:1"},
                     (char[]){"--token-file"},
                     (char[]){"token"},
                     (char[]){"--run-as"},
                     (char[]){"agent"},
                     (char[]){"--ephemeral"},
                     (char *)(uintptr_t)option,
                     (char *)(uintptr_t)value,
                     NULL};
    return config_read(option != NULL ? 10 : 8, words, ret_config, &done, &err);
}

START_TEST(ephemeral_nodes_of_one_host_have_names_and_folders_of_their_own)
{
    struct config config, other;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    setenv("TMPDIR", "/scratch/4711", 1);
    ck_assert(try_ephemeral(NULL, NULL, &config));
    autofree char *by_process = xprintf("%s-%d", host, (int)getpid());
    ck_assert_str_eq(config.name, by_process);
    config_finish(&config);
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("SLURMD_NODENAME", "gpu7", 1);
    ck_assert(try_ephemeral(NULL, NULL, &config));
    ck_assert(try_ephemeral(NULL, NULL, &other));
    ck_assert_str_eq(config.name, "gpu7-4711");
    ck_assert_ptr_eq(strstr(config.state, "/scratch/4711/gpuctl-gpu7-4711-"), config.state);
    ck_assert_ptr_eq(strstr(config.run, config.state), config.run);
    ck_assert(config.temporary_state);
    ck_assert_str_ne(config.state, other.state);
    config_finish(&config);
    config_finish(&other);
    unsetenv("SLURMD_NODENAME");
    ck_assert(try_ephemeral("--state", "/srv/kept", &config));
    autofree char *by_job = xprintf("%s-4711", host);
    ck_assert_str_eq(config.name, by_job);
    ck_assert_str_eq(config.state, "/srv/kept");
    ck_assert(!config.temporary_state);
    config_finish(&config);
}
END_TEST

Suite *agent_config_suite(void)
{
    Suite *suite = suite_create("agent-config");
    TCase *cases = tcase_create("config");
    tcase_add_loop_test(cases, paths_that_others_use_hold_for_every_working_folder, 0,
                        sizeof paths / sizeof paths[0]);
    tcase_add_loop_test(cases, the_run_folder_of_an_ordinary_user_outlives_the_last_logout, 0,
                        sizeof runtimes / sizeof runtimes[0]);
    tcase_add_loop_test(cases, jobs_of_an_agent_of_root_run_as_their_owners_unless_it_says_otherwise, 0,
                        sizeof users / sizeof users[0]);
    tcase_add_test(cases, what_slurm_says_of_its_job_holds_unless_an_option_says_otherwise);
    tcase_add_test(cases, ephemeral_nodes_of_one_host_have_names_and_folders_of_their_own);
    suite_add_tcase(suite, cases);
    return suite;
}
