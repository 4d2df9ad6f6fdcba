/* SPDX-License-Identifier: Apache-2.0 */
/* The search language of MLflow, which becomes SQL. */
#include <jansson.h>
#include <string.h>

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/search/filter.h"
#include "daemon/mlflow/search/subjects.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#define LIMIT_FUZZ_VALUES 4096

/* Each "?N" names a parameter of the statement itself, or a value, and each value is named. */
static void check_parameters(const struct filter *filter)
{
    const struct text *const parts[] = {&filter->joins, &filter->where, &filter->order};
    bool named[LIMIT_FUZZ_VALUES] = {0};
    size_t count = json_array_size(filter->values);
    FUZZ_MUST(count <= LIMIT_FUZZ_VALUES);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (size_t at = 0; at < parts[i]->length; at++) {
            FUZZ_MUST(parts[i]->bytes[at] != ';' && parts[i]->bytes[at] != '\0');
            if (parts[i]->bytes[at] == '?') {
                long number = strtol(&parts[i]->bytes[at + 1], NULL, 10);
                FUZZ_MUST(number >= 1 && number < FILTER_FIRST_PARAMETER + (long)count);
                if (number >= FILTER_FIRST_PARAMETER) {
                    named[number - FILTER_FIRST_PARAMETER] = true;
                }
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        FUZZ_MUST(named[i]);
    }
}

static bool read_filter(const uint8_t *bytes, size_t size,
                        void (*parse)(struct filter *filter, const char *text))
{
    static const struct subject *const subjects[] = {&subject_runs, &subject_experiments, &subject_models,
                                                     &subject_registry, &subject_versions};
    if (size == 0) {
        return false;
    }
    struct tracking_error error = {0};
    struct call call = {.error = &error};
    struct filter filter = {.call = &call, .subject = subjects[bytes[0] % 5]};
    autofree char *text = fuzz_text(bytes + 1, size - 1);
    parse(&filter, text);
    FUZZ_MUST(!call.failed || error.message[0] != '\0');
    if (!call.failed) {
        check_parameters(&filter);
    }
    filter_finish(&filter);
    return !call.failed;
}

bool fuzz_filter(const uint8_t *bytes, size_t size)
{
    return read_filter(bytes, size, filter_parse);
}

bool fuzz_order_by(const uint8_t *bytes, size_t size)
{
    return read_filter(bytes, size, filter_parse_order);
}
