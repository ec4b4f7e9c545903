// A kernel that measures the cost of launches. It spins for MICROS microseconds, or returns at once if MICROS is 0.
extern "C" __global__ void spin() {
#if MICROS > 0
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < MICROS * 1000ull);
#endif
}
