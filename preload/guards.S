/* The guards: stand before the driver's functions that the registry does not list, whose parameters
 * nobody here knows. While nothing is held back and the function is known, a guard jumps to it with
 * registers and stack as they came, and so it does after contextune_pass_guard (guards.c), which
 * hands over what is held and finds the function. All guards share the code behind the last. */
#include "guards.h"

    .set target, 0 /* of the next guard, in contextune_guard_targets */

#if defined(__x86_64__)

#include <cet.h> /* _CET_ENDBR, and the note that says that this object keeps the shadow stack */

/* r11 is the caller's to lose. */
.macro guard
    .p2align 4
    _CET_ENDBR
    leaq contextune_guard_targets+target(%rip), %r11
    jmp pass
    .set target, target + 8
.endm

#elif defined(__aarch64__)

/* x16 and x17 are the caller's to lose. */
.macro guard
    .p2align 4
    hint #34 /* bti c */
    adrp x16, contextune_guard_targets+target
    add x16, x16, :lo12:contextune_guard_targets+target
    b pass
    .set target, target + 8
.endm

#else
#error "The guards have to be written for this processor: see the comment above."
#endif

.macro named name
    .p2align 4
    .globl contextune_guard_\name
    .type contextune_guard_\name, %function
contextune_guard_\name:
    guard
    .size contextune_guard_\name, CONTEXTUNE_GUARD_BYTES
    .symver contextune_guard_\name, \name@CONTEXTUNE_1, remove
.endm

    .text
    .p2align 4
    .globl contextune_guards
    .hidden contextune_guards
contextune_guards:
    .cfi_startproc
#define CONTEXTUNE_GUARDED(name) named name
#include "registry/guarded.def"
    .rept CONTEXTUNE_SPARE_GUARDS
    guard
    .endr
    .p2align 4

#if defined(__x86_64__)

pass:
    cmpl $0, contextune_hot+CONTEXTUNE_HELD_OFFSET(%rip)
    jne 1f
    cmpq $0, (%r11)
    je 1f
    jmp *(%r11)
1:
    .irp register, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .endr
    subq $128, %rsp /* aligned to 16 now, where the caller keeps to the rules */
    .cfi_adjust_cfa_offset 128
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    movups %xmm\number, 16*\number(%rsp)
    .endr
    movq %r11, %rdi
    call contextune_pass_guard
    movq %rax, 128(%rsp) /* in the place of r11 */
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7
    movups 16*\number(%rsp), %xmm\number
    .endr
    addq $128, %rsp
    .cfi_adjust_cfa_offset -128
    .irp register, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
    popq %\register
    .cfi_adjust_cfa_offset -8
    .endr
    jmp *%r11

#elif defined(__aarch64__)

pass:
    adrp x17, contextune_hot
    add x17, x17, :lo12:contextune_hot
    ldr w17, [x17, #CONTEXTUNE_HELD_OFFSET]
    cbnz w17, 1f
    ldr x17, [x16]
    cbz x17, 1f
    br x17 /* by x17, which a callee's landing pad for calls accepts */
1:
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset 29, -224
    .cfi_offset 30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov x0, x16
    bl contextune_pass_guard
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    br x16

    .pushsection .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000000, 4, 1, 0 /* AArch64 features: BTI */
    .popsection

#endif

    .cfi_endproc

    .section .note.GNU-stack, "", %progbits
