/* The wall clock of a process, ahead of the machine's by as many seconds as a file says; what nobody can set stays right.

   To be preloaded, with CLOCK_AHEAD naming the file: one 64-bit number, which may change at any time. Where a program
   gives a time of day to wait until, it is one of this clock, and the system is asked for the machine's. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* No machine has been up for so long: later times are times of day. */
#define LONGEST_UPTIME 1000000000

static const volatile int64_t *file;

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("CLOCK_AHEAD");
    int opened = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = opened < 0 ? MAP_FAILED : mmap(NULL, sizeof *file, PROT_READ, MAP_SHARED, opened, 0);
    if (opened >= 0)
        close(opened);
    if (mapped == MAP_FAILED)
        abort();
    file = mapped;
}

static int64_t ahead(void)
{
    return file ? *file : 0;
}

static struct timespec real(const struct timespec *until)
{
    struct timespec found = *until;
    if (found.tv_sec > LONGEST_UPTIME)
        found.tv_sec -= ahead();
    return found;
}

/* The system's own function of this name; without the version, the oldest one might be found where there are several. */
#define SYSTEM(name, version)                                               \
    static __typeof__(&name) system_##name;                                 \
    if (!system_##name)                                                     \
        system_##name = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version); \
    if (!system_##name)                                                     \
        system_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *now)
{
    SYSTEM(clock_gettime, "GLIBC_2.17");
    int failed = system_clock_gettime(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec found;
    int failed = clock_gettime(CLOCK_REALTIME, &found);
    if (!failed)
        *now = (struct timeval){.tv_sec = found.tv_sec, .tv_usec = found.tv_nsec / 1000};
    return failed;
}

time_t time(time_t *into)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (into)
        *into = found.tv_sec;
    return found.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    SYSTEM(pthread_cond_timedwait, "GLIBC_2.3.2");
    struct timespec then = real(until);
    return system_pthread_cond_timedwait(condition, mutex, &then);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    SYSTEM(cnd_timedwait, "GLIBC_2.34");
    struct timespec then = real(until);
    return system_cnd_timedwait(condition, mutex, &then);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    SYSTEM(sem_timedwait, "GLIBC_2.34");
    struct timespec then = real(until);
    return system_sem_timedwait(semaphore, &then);
}
