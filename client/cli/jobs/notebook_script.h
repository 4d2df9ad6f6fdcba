/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a notebook's job; its source is the file notebook.sh. */
#ifndef CLI_NOTEBOOK_SCRIPT_H
#define CLI_NOTEBOOK_SCRIPT_H

#include <stddef.h>

extern const unsigned char notebook_script[];
extern const size_t notebook_script_length;

#endif
