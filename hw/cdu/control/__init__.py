"""Control of a unit as a driver sees it: registers, jobs, interrupts, counters."""
