/* SPDX-License-Identifier: Apache-2.0 */
/* uthash with our memory; by itself uthash would end the program without a message. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stdlib.h>

#include "proto/base/text/text.h"

#define uthash_malloc(size) xalloc(size)
#define uthash_fatal(text)  abort() /* xalloc never returns NULL */
#include <uthash.h>

#endif
