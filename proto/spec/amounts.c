/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes CPUs, to thousandths, and memory, to bytes. */
#include "proto/spec/amounts.h"

#include <math.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

bool cpus_decode(const json_t *value, const char *field, int64_t least, int64_t *ret_millicpus,
                 struct err *err)
{
    double cpus = json_is_number(value) ? json_number_value(value) : -1;
    int64_t millicpus = cpus >= 0 && cpus <= LIMIT_CPUS ? llround(cpus * 1000) : -1;
    if (millicpus < least || fabs(cpus * 1000 - (double)millicpus) > 1e-6) {
        return err_field(err, ERR_FIELD, field, "give 8 or 0.5 for instance",
                         "%s must be a number from %.15g to %d with at most three decimals", field,
                         (double)least / 1000, LIMIT_CPUS);
    }
    *ret_millicpus = millicpus;
    return true;
}

bool memory_decode(const json_t *value, const char *field, int64_t least, int64_t *ret_bytes, struct err *err)
{
    int64_t bytes = -1;
    const char *text = json_string_value(value);
    bool read = text != NULL ? text_to_size(text, &bytes) : json_whole(value, &bytes);
    if (!read || bytes < least || bytes > LIMIT_MEMORY_BYTES) {
        return err_field(err, ERR_FIELD, field, "give \"64G\" for instance",
                         "%s must be a number of bytes, or a text such as \"512M\", from %lldM to %lldT",
                         field, (long long)(least / MIB), LIMIT_MEMORY_BYTES / GIB / 1024);
    }
    *ret_bytes = bytes;
    return true;
}

json_t *cpus_encode(int64_t millicpus)
{
    return millicpus % 1000 == 0 ? json_integer(millicpus / 1000) : json_real((double)millicpus / 1000);
}
