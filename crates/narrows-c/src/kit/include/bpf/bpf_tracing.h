/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef NARROWS_BPF_TRACING_H
#define NARROWS_BPF_TRACING_H

#include <bpf/bpf_helpers.h>

/* In BPF a program takes its arguments from an array; here it is a function that has them. */
#define BPF_PROG(name, arguments...) name(arguments)
#define BPF_STRUCT_OPS(name, arguments...) SEC("struct_ops/" #name) name(arguments)

#endif
