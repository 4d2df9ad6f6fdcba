/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/spec/program: what a job without a name is called. */
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/program.h"
#include "tests/unit/proto/proto_suites.h"

static void assert_program(const char *command, const char *expected)
{
    char program[PROGRAM_BYTES];
    autojson json_t *words = parse_quoted(command);
    program_of(words, program);
    ck_assert_str_eq(program, expected);
}

START_TEST(a_script_of_python_is_the_program)
{
    assert_program("['python','train.py','--lr','0.1']", "train.py");
    assert_program("['/usr/bin/python3.11','-u','-W','ignore','-Xutf8','/src/train.py']", "train.py");
    assert_program("['python','run']", "run");
    assert_program("['python','-m','pkg.train','x.py']", "pkg.train");
}
END_TEST

START_TEST(a_script_behind_a_launcher_is_the_program)
{
    assert_program("['torchrun','--nproc-per-node','8','train.py','eval.py']", "train.py");
    assert_program("['torchrun','--nnodes=2','-m','pkg.train']", "pkg.train");
    assert_program("['python','-m','torch.distributed.run','--nproc-per-node','8','a/train.py']", "train.py");
    assert_program("['accelerate','launch','--num_processes','2','train.py']", "train.py");
}
END_TEST

START_TEST(any_other_command_is_called_by_its_first_word)
{
    assert_program("['bash','-c','python train.py']", "bash");
    assert_program("['./build/solve','train.py']", "solve");
    assert_program("['python','-c','print(1)','x.py']", "python");
    assert_program("['python']", "python");
    assert_program("['python','-m']", "python");
    assert_program("['python','src/']", "python");
    assert_program("['torchrun','--help']", "torchrun");
    assert_program("['torchrun','.py']", "torchrun");
    assert_program("['']", "");
    assert_program("[]", "");
    char program[PROGRAM_BYTES] = "x";
    program_of(NULL, program);
    ck_assert_str_eq(program, "");
}
END_TEST

START_TEST(a_long_name_is_cut_between_characters)
{
    autofree char *command = xprintf("['%062d\xc3\xa9-and-more']", 0);
    char expected[PROGRAM_BYTES];
    snprintf(expected, sizeof expected, "%062d", 0);
    assert_program(command, expected);
    autofree char *whole = xprintf("['%061d\xc3\xa9-and-more']", 0);
    snprintf(expected, sizeof expected, "%061d\xc3\xa9", 0);
    assert_program(whole, expected);
}
END_TEST

Suite *program_suite(void)
{
    Suite *suite = suite_create("program");
    TCase *tcase = tcase_create("program");
    tcase_add_test(tcase, a_script_of_python_is_the_program);
    tcase_add_test(tcase, a_script_behind_a_launcher_is_the_program);
    tcase_add_test(tcase, any_other_command_is_called_by_its_first_word);
    tcase_add_test(tcase, a_long_name_is_cut_between_characters);
    suite_add_tcase(suite, tcase);
    return suite;
}
