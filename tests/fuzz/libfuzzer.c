/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of libFuzzer for one target, FUZZ_TARGET. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    FUZZ_TARGET(bytes, size);
    return 0;
}
