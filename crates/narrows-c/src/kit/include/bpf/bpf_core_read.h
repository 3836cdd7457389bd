/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fields are where the compiler knows them to be: nothing is relocated. */
#ifndef NARROWS_BPF_CORE_READ_H
#define NARROWS_BPF_CORE_READ_H

#include <bpf/bpf_helpers.h>

#define BPF_CORE_READ_BITFIELD(pointer, field) ((unsigned long long)(pointer)->field)
#define BPF_CORE_READ(pointer, field) ((pointer)->field)
#define bpf_core_field_exists(field...) 1
#define bpf_core_type_exists(type) 1

#endif
