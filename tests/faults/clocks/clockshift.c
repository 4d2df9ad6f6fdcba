/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a daemon, it sets its wall clock while it runs: forward or back by the nanoseconds in the
 * file that CLOCKSHIFT_FILE names, which holds one 64-bit number and may change at any time. The clocks that
 * nobody can set are left alone. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static const volatile int64_t *shift_ns; /* in the file; NULL: there is none */

static void __attribute__((constructor)) open_shift(void)
{
    const char *path = getenv("CLOCKSHIFT_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof *shift_ns, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    shift_ns = mapped != MAP_FAILED ? mapped : NULL;
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int code = (int)syscall(SYS_clock_gettime, clock, ret_time);
    if (code == 0 && shift_ns != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = ret_time->tv_nsec + *shift_ns % SECOND_NS;
        ret_time->tv_sec += *shift_ns / SECOND_NS + (ns < 0 ? -1 : ns / SECOND_NS);
        ret_time->tv_nsec = ns < 0 ? ns + SECOND_NS : ns % SECOND_NS;
    }
    return code;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time != NULL) {
        *ret_time = now.tv_sec;
    }
    return now.tv_sec;
}
