"""What a driver sees: registers, jobs, interrupts, counters."""
