/* dlsym, for every program in the process.
 *
 * The real dlsym looks at its return address to learn who asks: RTLD_NEXT and RTLD_DEFAULT depend
 * on it. So this is not a C function that calls on, which would make us the caller: it asks the
 * router, and then either returns the wrapper or jumps to the real dlsym with registers and stack
 * as they came. A compiler may or may not turn a C call into such a jump. */

/* It has libc's versions: references name one of them, and other interposers look for the next dlsym
 * by one of them with dlvsym, which accepts no symbol without a version. */
#if defined(__x86_64__)
#define OLDEST_VERSION GLIBC_2.2.5
#elif defined(__aarch64__)
#define OLDEST_VERSION GLIBC_2.17
#endif
#define EXPORT_DLSYM(alias, version) \
    .globl alias; .set alias, route; .symver alias, dlsym##version, remove
#define EXPAND_EXPORT_DLSYM(alias, version) EXPORT_DLSYM(alias, version)

#if defined(__x86_64__)

#include <cet.h> /* _CET_ENDBR, and the note that says that this object keeps the shadow stack */

    .text
    .type route, @function
    .p2align 4
route:
    .cfi_startproc
    _CET_ENDBR
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp /* the stack is aligned to 16 at a call */
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx /* the caller */
    call contextune_route_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 1f
    ret
1:
    movq contextune_next_dlsym(%rip), %rax
    jmp *%rax
    .cfi_endproc
    .size route, . - route

#elif defined(__aarch64__)

    .text
    .type route, %function
    .p2align 4
route:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    mov x2, x30 /* the caller */
    bl contextune_route_dlsym
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    cbz x16, 1f
    mov x0, x16
    ret
1:
    adrp x16, contextune_next_dlsym
    ldr x16, [x16, #:lo12:contextune_next_dlsym]
    br x16 /* by x16, which a callee's landing pad for calls accepts */
    .cfi_endproc
    .size route, . - route

    .pushsection .note.gnu.property, "a"
    .p2align 3
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000000, 4, 1, 0 /* AArch64 features: BTI */
    .popsection

#else
#error "dlsym has to be written for this processor: see the comment above."
#endif

    .type newest, %function
    .type oldest, %function
    EXPORT_DLSYM(newest, @@GLIBC_2.34)
    EXPAND_EXPORT_DLSYM(oldest, @OLDEST_VERSION)

    .section .note.GNU-stack, "", %progbits
