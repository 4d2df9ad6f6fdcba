/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership that ends with the scope: declare with one of these, hand on with give(). */
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

/* Hands the pointer in an auto variable to someone else and leaves NULL behind. */
#define give(variable)                                                                                       \
    __extension__({                                                                                          \
        __typeof__(variable) given_ = (variable);                                                            \
        (variable) = NULL;                                                                                   \
        given_;                                                                                              \
    })

/* The same for a file descriptor; leaves -1 behind. */
static inline int give_fd(int *fd)
{
    int given = *fd;
    *fd = -1;
    return given;
}

#endif
