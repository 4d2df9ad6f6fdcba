/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a job in a container image sees: the image's own, which stay as they are, and what the ranks
 * write, which goes with the attempt. Needs only libc. */
#ifndef AGENT_IMAGE_ROOT_H
#define AGENT_IMAGE_ROOT_H

/* In the attempt's folder on disk. */
#define IMAGE_FOLDER "image"
#define IMAGE_MERGED "root" /* in that folder: where the files of the container are */

/* In the run folder: the bundle, and the process number of the container. */
#define IMAGE_BUNDLE   "image"
#define IMAGE_PID_FILE "image.pid"

/* In a process of its own, which becomes the OCI runtime that makes the container: in a mount namespace of
 * its own, and where it is not root in a user namespace in which it is. image: folder of the image's files,
 * logs: the attempt's folder on disk, run: its run folder, absolute. Returns only on failure, which it writes
 * to stderr. */
void image_root_make(const char *image, const char *logs, const char *run);

#endif
