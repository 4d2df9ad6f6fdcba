/* SPDX-License-Identifier: Apache-2.0 */
/* The job of the `start` bench: its first instruction that matters reads the clock, and the bench reads the
 * number from a FIFO. It is linked statically, so that what is timed is the start of a process and not the
 * dynamic loader. */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    const int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    int fd = argc == 2 ? open(argv[1], O_WRONLY | O_CLOEXEC) : -1;
    return fd < 0 || write(fd, &us, sizeof us) != sizeof us;
}
