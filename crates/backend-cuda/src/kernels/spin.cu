// A kernel for measurements of launches. It returns at once, or spins for MICROS microseconds.
extern "C" __global__ void spin() {
#if MICROS > 0
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < MICROS * 1000ull);
#endif
}
