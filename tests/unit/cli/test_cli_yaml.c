/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of client/cli: YAML to JSON and back. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/yaml_read.h"
#include "client/cli/spec/yaml_write.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_client.h"
#include "tests/unit/cli/cli_suites.h"

static void assert_yaml(const char *text, const char *expected)
{
    struct yaml yaml;
    struct err err;
    ck_assert_msg(yaml_parse("f", text, strlen(text), &yaml, &err), "%s: %s", text, err.text);
    autofree char *got = json_dumps(yaml.json, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_str_eq(got, expected);
    yaml_finish(&yaml);
}

static void assert_refused(const char *text, const char *message)
{
    struct yaml yaml;
    struct err err;
    ck_assert_msg(!yaml_parse("f", text, strlen(text), &yaml, &err), "%s", text);
    ck_assert_int_eq(err.code, ERR_USAGE);
    ck_assert_str_eq(err.text, message);
}

START_TEST(plain_scalars_have_the_values_of_the_core_schema)
{
    assert_yaml("[0, -7, +7, 0x1F, 0o17, 017, 9223372036854775807]", "[0,-7,7,31,15,17,9223372036854775807]");
    assert_yaml("[1.5, -.5, 1., 1e3, 1E-2]", "[1.5,-0.5,1.0,1000.0,0.01]");
    assert_yaml("[true, True, FALSE, null, ~, Null]", "[true,true,false,null,null,null]");
    assert_yaml("a:", "{\"a\":null}");
}
END_TEST

START_TEST(whatever_else_is_plain_or_quoted_is_text)
{
    assert_yaml("[yes, no, on, off, 12:30, 1_000, 0b1, 2026-11-21, 1.2.3, '1', \"true\", '', e3, ., -, +]",
                "[\"yes\",\"no\",\"on\",\"off\",\"12:30\",\"1_000\",\"0b1\",\"2026-11-21\",\"1.2.3\",\"1\","
                "\"true\",\"\",\"e3\",\".\",\"-\",\"+\"]");
    assert_yaml("a: |\n  1\n  2\nb: >-\n  x\n  y\n", "{\"a\":\"1\\n2\\n\",\"b\":\"x y\"}");
}
END_TEST

START_TEST(json_is_yaml_too)
{
    assert_yaml("{\"gpus\": 2, \"command\": [\"a\", \"b\\u00e9\"]}",
                "{\"gpus\":2,\"command\":[\"a\",\"b\xc3\xa9\"]}");
}
END_TEST

START_TEST(what_cannot_be_carried_over_is_refused_with_its_place)
{
    assert_refused("a: 1\nb: 2\na: 3\n", "f:3:1: a is there twice");
    assert_refused("a: &x 1\nb: 2\n", "f:1:4: anchors are not understood");
    assert_refused("a: *x\n", "f:1:4: aliases are not understood");
    assert_refused("a: !!str 1\n", "f:1:4: tags are not understood");
    assert_refused("a: .inf\n", "f:1:4: NaN and infinity cannot be values here");
    assert_refused("a: 9223372036854775808\n", "f:1:4: the number does not fit into 64 bits");
    assert_refused("a: 1e999\n", "f:1:4: the number does not fit into 64 bits");
    assert_refused("a: \"x\\0y\"\n", "f:1:4: a NUL cannot be part of a text");
    assert_refused("? [a]\n: 1\n", "f:1:3: a key must be a word or a text");
    assert_refused("a: 1\n---\nb: 2\n", "f:3:1: a second document begins");
    assert_refused("# nothing\n", "f is empty");
}
END_TEST

START_TEST(syntax_errors_name_line_and_column)
{
    assert_refused("a:\n\tb: 1\n", "f:2:1: a tab cannot indent in YAML");
    assert_refused("a: [1,\nb: 2\n", "f:3:1: did not find expected ',' or ']'");
    struct yaml yaml;
    struct err err;
    ck_assert(!yaml_parse("f", "a: \xff\n", 5, &yaml, &err));
    ck_assert_str_eq(err.hint, "write the file as UTF-8");
}
END_TEST

START_TEST(depth_size_and_number_are_bounded)
{
    autotext struct text deep = {0};
    autotext struct text many = {0};
    for (int i = 0; i < LIMIT_JSON_DEPTH + 1; i++) {
        text_append(&deep, "[");
    }
    assert_refused(deep.bytes, "f:1:33: values are nested too deeply");
    text_append(&many, "[");
    for (int i = 0; i < LIMIT_YAML_VALUES; i++) {
        text_append(&many, "1,");
    }
    text_append(&many, "]");
    struct yaml yaml;
    struct err err;
    ck_assert(!yaml_parse("f", many.bytes, many.length, &yaml, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "there are more than 8192 values"));
    autofree char *large = xzalloc(LIMIT_SUBMIT_BYTES + 1);
    ck_assert(!yaml_parse("f", large, LIMIT_SUBMIT_BYTES + 1, &yaml, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "the limit is"));
}
END_TEST

START_TEST(fields_know_their_line_and_their_spelling)
{
    const char *text = "gpus: 1\nenv:\n  A: 1e-3\nfiles:\n  - path: x\n  - path: y\n    text: z\n";
    struct yaml yaml;
    struct err err;
    ck_assert(yaml_parse("f", text, strlen(text), &yaml, &err));
    ck_assert_uint_eq(yaml_line(&yaml, "gpus"), 1);
    ck_assert_uint_eq(yaml_line(&yaml, "env.A"), 3);
    ck_assert_uint_eq(yaml_line(&yaml, "env.B"), 3); /* the map begins there */
    ck_assert_uint_eq(yaml_line(&yaml, "files[1].text"), 7);
    ck_assert_uint_eq(yaml_line(&yaml, "files[1]"), 6);
    ck_assert_uint_eq(yaml_line(&yaml, "filesystem"), 1);
    ck_assert_str_eq(yaml_spelling(&yaml, "env.A"), "1e-3");
    ck_assert_ptr_null(yaml_spelling(&yaml, "env"));
    yaml_finish(&yaml);
}
END_TEST

static void assert_round_trip(const char *json)
{
    struct err err;
    struct yaml yaml;
    autotext struct text out = {0};
    autojson json_t *value = json_parse(json, strlen(json), &err);
    ck_assert_ptr_nonnull(value);
    ck_assert_msg(yaml_write(value, &out, &err), "%s", err.text);
    ck_assert_msg(yaml_parse("f", out.bytes, out.length, &yaml, &err), "%s in\n%s", err.text, out.bytes);
    ck_assert_msg(json_equal(yaml.json, value), "%s became\n%s", json, out.bytes);
    yaml_finish(&yaml);
}

START_TEST(what_is_written_reads_back_as_the_same)
{
    assert_round_trip("{\"a\":[1,-2,1.5,true,false,null,\"\"],\"b\":{\"c\":{}},\"d\":[]}");
    assert_round_trip(
        "[\"1\",\"1e3\",\"true\",\"null\",\"~\",\"yes\",\"#x\",\"a: b\",\"- a\",\"*x\",\"&x\",\" x \"]");
    assert_round_trip(
        "[\"line\\nline\\n\",\"  indented\\nx\",\"\\n\",\"tab\\tx\\n\",\"h\\u00e9\\n\",\"x\\n\\n\"]");
    assert_round_trip("{\"012\":\"x\",\"true\":1,\"with space\":2,\"\":3}");
}
END_TEST

Suite *cli_yaml_suite(void)
{
    Suite *suite = suite_create("cli yaml");
    TCase *tests = tcase_create("yaml");
    tcase_add_test(tests, plain_scalars_have_the_values_of_the_core_schema);
    tcase_add_test(tests, whatever_else_is_plain_or_quoted_is_text);
    tcase_add_test(tests, json_is_yaml_too);
    tcase_add_test(tests, what_cannot_be_carried_over_is_refused_with_its_place);
    tcase_add_test(tests, syntax_errors_name_line_and_column);
    tcase_add_test(tests, depth_size_and_number_are_bounded);
    tcase_add_test(tests, fields_know_their_line_and_their_spelling);
    tcase_add_test(tests, what_is_written_reads_back_as_the_same);
    suite_add_tcase(suite, tests);
    return suite;
}
