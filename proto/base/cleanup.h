/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership that ends with the scope: declare the variable with one of these attributes, hand it on with
 * give(). */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

static inline void cleanup_fclose(FILE **file)
{
    if (*file != NULL) {
        fclose(*file);
    }
}

#define autofree   __attribute__((cleanup(cleanup_free)))
#define autoclose  __attribute__((cleanup(cleanup_close))) /* an int fd; -1 is none */
#define autofclose __attribute__((cleanup(cleanup_fclose)))

/* Returns the pointer of an auto variable and leaves NULL in the variable. */
#define give(variable)                                                                                       \
    __extension__({                                                                                          \
        __typeof__(variable) given_ = (variable);                                                            \
        (variable) = NULL;                                                                                   \
        given_;                                                                                              \
    })

/* Returns the file descriptor and leaves -1 in the variable. */
static inline int give_fd(int *fd)
{
    int given = *fd;
    *fd = -1;
    return given;
}

#endif
