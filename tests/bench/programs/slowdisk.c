/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a daemon, it makes every fsync and fdatasync take longer: by 2 ms, as a cloud volume instead
 * of a local disk, or by the milliseconds in the file that SLOWDISK_FILE names, which may change at any time.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long delay_ms(void)
{
    char text[16] = "";
    const char *path = getenv("SLOWDISK_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return 2;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 ? strtol(text, NULL, 10) : 0;
}

static void linger(void)
{
    long ms = delay_ms();
    const struct timespec delay = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&delay, NULL);
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
