/* SPDX-License-Identifier: Apache-2.0 */
/* Passes descriptors between the agent, forkservers, shims and warm workers. */
#include "agent/common/fd_message.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

bool fd_message_send(int to, const void *bytes, size_t size, const int *fds, size_t count, int flags)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(FD_MESSAGE_MAX * sizeof *fds)];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof *fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
    }
    return sendmsg(to, &message, flags | MSG_NOSIGNAL) == (ssize_t)size;
}

ssize_t fd_message_receive_several(int from, char *text, size_t room, int *ret_fds, size_t most,
                                   size_t *ret_count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = text, .iov_len = room - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(most * sizeof(int))};
    ssize_t length = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *ret_count = 0;
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        *ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret_fds, CMSG_DATA(header), *ret_count * sizeof(int));
    }
    text[length > 0 ? length : 0] = '\0';
    return length;
}

ssize_t fd_message_receive(int from, char *text, size_t room, int *ret_fd)
{
    size_t count;
    *ret_fd = -1;
    return fd_message_receive_several(from, text, room, ret_fd, 1, &count);
}
