/* SPDX-License-Identifier: Apache-2.0 */
/* Makes job specs, accepted and refused, from JSON with single quotes. */
#include "tests/unit/proto/jobspec_rig.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "tests/unit/proto/proto_suites.h"

struct job_spec spec_taken(json_t *json)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(json, LIMIT_LEASE_MIN_MS, &spec, &err), "%s", err.text);
    return spec;
}

json_t *spec_with(const char *members)
{
    json_t *json = parse_quoted("{'gpus':1,'command':['true']}");
    autojson json_t *more = parse_quoted(members);
    json_object_update(json, more);
    return json;
}

struct err spec_refusal(json_t *json)
{
    struct err err = {0};
    struct job_spec spec;
    autofree char *text = json_text(json);
    ck_assert_msg(!job_spec_decode(json, LIMIT_LEASE_MIN_MS, &spec, &err), "%.200s", text);
    return err;
}

void spec_refused(json_t *json, enum err_code code, const char *field)
{
    struct err err = spec_refusal(json);
    ck_assert_msg(err.code == code, "%s: %s", err_slug(err.code), err.text);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.text, field) != NULL, "%s", err.text);
}

json_t *spec_of_payload(const char *payload, size_t length)
{
    autofree char *base64 = text_to_base64((const uint8_t *)payload, length);
    return json_pack("{s:i, s:{s:s}}", "gpus", 1, "function", "inline", base64);
}
