/* Entry after reset, which calls main, and the entry of the interrupt. */
    .option arch, +zicsr
    .section .start, "ax"
    .global _start
_start:
    la sp, stack_top
    la t0, trap
    csrw mtvec, t0
    li t0, 1 << 11              /* external interrupts; main lets them through */
    csrw mie, t0
    csrsi mstatus, 1 << 3
    call main
    li t0, EXIT
    sw a0, 0(t0)
1:  j 1b

    .balign 4
trap:
    addi sp, sp, -16
    sw t0, 0(sp)
    sw t1, 4(sp)
    csrr t0, mcause
    bgez t0, failed             /* no interrupt: the program is wrong */
    csrw 0xbc0, zero            /* VexRiscv: no line passes until main lets it; the line is high until the unit is told */
    la t0, interrupts
    lw t1, 0(t0)
    addi t1, t1, 1
    sw t1, 0(t0)
    lw t0, 0(sp)
    lw t1, 4(sp)
    addi sp, sp, 16
    mret

failed:
    li t0, EXIT
    li t1, TRAPPED
    sw t1, 0(t0)
1:  j 1b
