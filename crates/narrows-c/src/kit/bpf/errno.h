/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For programs in BPF, for which the C library of the machine has no headers: the numbers that they return or look for. */
#ifndef NARROWS_ERRNO_H
#define NARROWS_ERRNO_H

enum {
	EPERM = 1,
	ENOENT = 2,
	E2BIG = 7,
	EAGAIN = 11,
	ENOMEM = 12,
	EACCES = 13,
	EFAULT = 14,
	EBUSY = 16,
	EEXIST = 17,
	EINVAL = 22,
	ENOSPC = 28,
	ERANGE = 34,
	EOPNOTSUPP = 95,
};

#endif
