/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a daemon, it makes every fsync and fdatasync take 2 ms longer: a cloud volume instead of a
 * local disk. */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static void linger(void)
{
    const struct timespec two_ms = {.tv_nsec = 2000000};
    nanosleep(&two_ms, NULL);
}

int fdatasync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    linger();
    return real(fd);
}

int fsync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    linger();
    return real(fd);
}
