/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Variables that an experiment may set before a file's controller begins: `module_param` of modules of the kernel. */
#ifndef NARROWS_PARAMETER_H
#define NARROWS_PARAMETER_H

#include <stdint.h>

struct kernel_param { void *arg; };
struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *kp);
	int (*get)(char *buffer, const struct kernel_param *kp);
};

enum narrows_kind { NARROWS_UNSIGNED, NARROWS_SIGNED, NARROWS_BOOL, NARROWS_DOUBLE, NARROWS_FLOAT, NARROWS_TEXT };

struct narrows_parameter {
	const char *name;
	void *place;
	uint32_t size;
	enum narrows_kind kind;
	const struct kernel_param_ops *ops;	/* of `module_param_cb`: who sets it */
};

/* By its address, so that a constant, which cannot be set, is none of these. */
#define NARROWS_KIND(variable) _Generic(&(variable),	\
	_Bool *: NARROWS_BOOL,				\
	float *: NARROWS_FLOAT, double *: NARROWS_DOUBLE,	\
	char *: (char)-1 < 0 ? NARROWS_SIGNED : NARROWS_UNSIGNED,	\
	signed char *: NARROWS_SIGNED, short *: NARROWS_SIGNED, int *: NARROWS_SIGNED,	\
	long *: NARROWS_SIGNED, long long *: NARROWS_SIGNED,				\
	unsigned char *: NARROWS_UNSIGNED, unsigned short *: NARROWS_UNSIGNED, unsigned int *: NARROWS_UNSIGNED,	\
	unsigned long *: NARROWS_UNSIGNED, unsigned long long *: NARROWS_UNSIGNED,		\
	default: NARROWS_TEXT)

/* Sections hold pointers, as compilers align structures as they like. */
#define NARROWS_PARAMETER_ENTRY(called, place_, size_, kind_, ops_)					\
	static const struct narrows_parameter narrows_parameter_##called =				\
		{ .name = #called, .place = (place_), .size = (size_), .kind = (kind_), .ops = (ops_) };	\
	static const struct narrows_parameter *narrows_entry_##called					\
		__attribute__((used, section("narrows_parameters"))) = &narrows_parameter_##called

#endif
