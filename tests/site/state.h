/* What a process looks like from inside, as lines of text that two runs can be compared by:
 * everything that a library might change and has no business to. */
#ifndef PENSTOCK_TESTS_SITE_STATE_H
#define PENSTOCK_TESTS_SITE_STATE_H

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char** environ;

static char** remembered;

static void on_signal(int number) { (void)number; }

/* Settings that are not the defaults, so that a reset to the defaults is seen as well. Traps on:
 * a division 0.0/0.0 in a statistic would end the program. */
static void provoke_state(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  umask(027);
  if (setlocale(LC_ALL, "") == NULL) fprintf(stderr, "the locale is not known\n");
  fesetround(FE_UPWARD);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
}

static void remember_environment(void) {
  int n = 0;
  while (environ[n] != NULL) ++n;
  remembered = calloc((size_t)n + 1, sizeof *remembered);
  for (int i = 0; i < n; ++i) remembered[i] = strdup(environ[i]);
}

static void print_changed_environment(FILE* out, const char* moment) {
  int i = 0;
  for (; remembered[i] != NULL && environ[i] != NULL; ++i) {
    if (strcmp(remembered[i], environ[i]) != 0) {
      fprintf(out, "%s variable changed: %s -> %s\n", moment, remembered[i], environ[i]);
    }
  }
  if ((remembered[i] == NULL) != (environ[i] == NULL)) {
    fprintf(out, "%s variables added or removed\n", moment);
  }
}

static void print_names_of_variables(FILE* out) {
  for (char** v = environ; *v != NULL; ++v) {
    fprintf(out, "variable %.*s\n", (int)strcspn(*v, "="), *v);
  }
}

static void print_signals(FILE* out, const char* moment) {
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  for (int s = 1; s < NSIG; ++s) {
    struct sigaction a;
    if (sigaction(s, NULL, &a) != 0) continue;
    const char* handler = a.sa_handler == SIG_DFL      ? "default"
                          : a.sa_handler == SIG_IGN    ? "ignored"
                          : a.sa_handler == &on_signal ? "ours"
                                                       : "another";
    fprintf(out, "%s signal %d %s flags %x blocked %d\n", moment, s, handler, (unsigned)a.sa_flags,
            sigismember(&blocked, s));
  }
}

static void print_limits(FILE* out, const char* moment) {
  for (int r = 0; r < RLIM_NLIMITS; ++r) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)r, &limit) != 0) continue;
    fprintf(out, "%s limit %d %llu %llu\n", moment, r, (unsigned long long)limit.rlim_cur,
            (unsigned long long)limit.rlim_max);
  }
}

static void print_scheduling(FILE* out, const char* moment) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  fprintf(out, "%s processors", moment);
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &set)) fprintf(out, " %d", c);
  }
  struct itimerval timer;
  getitimer(ITIMER_REAL, &timer);
  fprintf(out, "\n%s policy %d priority %d timer %ld\n", moment, sched_getscheduler(0),
          getpriority(PRIO_PROCESS, 0), (long)timer.it_value.tv_sec);
}

static void print_state(FILE* out, const char* moment) {
  char text[4096] = "?";
  const mode_t mask = umask(0);
  umask(mask);
  fprintf(out, "%s umask %04o\n", moment, (unsigned)mask);
  fprintf(out, "%s directory %s\n", moment, getcwd(text, sizeof text));
  fprintf(out, "%s locale %s, 0.5 is %.1f\n", moment, setlocale(LC_ALL, NULL), 0.5);
  fprintf(out, "%s rounding %d traps %x\n", moment, fegetround(), (unsigned)fegetexcept());
  prctl(PR_GET_NAME, text);
  fprintf(out, "%s name %s dumpable %d\n", moment, text, prctl(PR_GET_DUMPABLE));
  print_signals(out, moment);
  print_limits(out, moment);
  print_scheduling(out, moment);
  print_changed_environment(out, moment);
}

/* What MPI libraries call their sockets, pipes and segments differs from run to run. */
static void without_number(char* name) {
  char* end = strstr(name, ":[");
  if (strncmp(name, "/dev/shm/", 9) == 0) end = name + 9 + strcspn(name + 9, "_.-0123456789");
  if (end != NULL) *end = '\0';
}

/* By what they lead to. */
static void print_descriptors(FILE* out, const char* moment) {
  DIR* all = opendir("/proc/self/fd");
  for (struct dirent* e; all != NULL && (e = readdir(all)) != NULL;) {
    const int fd = atoi(e->d_name);
    char to[4096];
    if (fd <= STDERR_FILENO || fd == dirfd(all) || fd == fileno(out)) continue;
    const ssize_t n = readlinkat(dirfd(all), e->d_name, to, sizeof to - 1);
    to[n > 0 ? n : 0] = '\0';
    without_number(to);
    fprintf(out, "%s descriptor of %s\n", moment, to);
  }
  if (all != NULL) closedir(all);
}

#endif
