/* SPDX-License-Identifier: Apache-2.0 */
/* proto/openapi.yaml, as it was when the program was built. */
#ifndef HTTP_CONTRACT_H
#define HTTP_CONTRACT_H

#include <stddef.h>

extern const unsigned char contract_yaml[];
extern const size_t contract_yaml_length;

#endif
