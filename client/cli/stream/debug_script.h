/* SPDX-License-Identifier: Apache-2.0 */
/* The program that reads the stacks of a rank; its source is the file debug.sh. */
#ifndef CLI_DEBUG_SCRIPT_H
#define CLI_DEBUG_SCRIPT_H

#include <stddef.h>

extern const unsigned char debug_script[];
extern const size_t debug_script_length;

#endif
