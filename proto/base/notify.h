/* SPDX-License-Identifier: Apache-2.0 */
/* Tells systemd, or any other parent that set NOTIFY_SOCKET, that this program is ready to work. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/* Does nothing without NOTIFY_SOCKET. It removes NOTIFY_SOCKET from the environment, so that no child reports
 * in our name. */
void notify_ready(void);

#endif
