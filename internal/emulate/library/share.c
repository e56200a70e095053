// Processes that share a card.
//
// Every process of a run maps one file, in which each says what it holds of each card: its context, and what it took
// from the driver. So a process sees how little the others leave it, and the run knows the moment at which they held most.
//
// A record lock on the file's first byte serves as a mutex, and one on a byte for each process says that it lives:
// the kernel releases them however a process ends, as the driver frees its memory.
#define _GNU_SOURCE
#include "emulate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES 64 // shared.go

struct holder { int64_t pid, bytes; };

static struct table {
	struct { int64_t bytes; struct holder by[PROCESSES]; } worst[MAX_DEVICES];
	struct { int64_t pid, bytes[MAX_DEVICES]; } processes[PROCESSES];
} alone, *table;
static int file = -1, mine = -1, owner;

static int lock_byte(int command, int type, int at) {
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
	return fcntl(file, command, &l) ? -1 : l.l_type;
}

static void map_table(void) {
	const char *folder = getenv("MEMORYMARK_EMULATE_FOLDER");
	char path[4096];
	table = &alone;
	if (!folder || snprintf(path, sizeof path, "%s/cards", folder) >= (int)sizeof path) return;
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || ftruncate(file, sizeof *table)) return;
	void *at = mmap(0, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (at != MAP_FAILED) table = at;
}

static int lives(int process) {
	return table->processes[process].pid && (process == mine || file < 0 || lock_byte(F_GETLK, F_WRLCK, 1 + process) != F_UNLCK);
}

static void claim(void) {
	owner = getpid();
	mine = -1;
	int free = 0;
	while (free < PROCESSES - 1 && lives(free)) free++;
	mine = free;
	table->processes[mine].pid = owner;
	for (int d = 0; d < MAX_DEVICES; d++) table->processes[mine].bytes[d] = 0;
	if (file >= 0) lock_byte(F_SETLK, F_WRLCK, 1 + mine);
}

void share_lock(void) {
	if (!table) map_table();
	if (file >= 0) lock_byte(F_SETLKW, F_WRLCK, 0);
}

void share_unlock(void) {
	if (file >= 0) lock_byte(F_SETLK, F_UNLCK, 0);
}

long share_others(int device) {
	long sum = 0;
	for (int p = 0; p < PROCESSES; p++)
		if (!(p == mine && owner == getpid()) && table->processes[p].bytes[device] && lives(p)) sum += table->processes[p].bytes[device];
	return sum;
}

void share_hold(int device, long bytes) {
	if (owner != getpid()) claim(); // the first of this process, or of a forked child
	table->processes[mine].bytes[device] = bytes;
	long sum = bytes + share_others(device);
	if (sum <= table->worst[device].bytes) return;
	table->worst[device].bytes = sum;
	for (int p = 0; p < PROCESSES; p++)
		table->worst[device].by[p] = lives(p) ? (struct holder){table->processes[p].pid, table->processes[p].bytes[device]} : (struct holder){0, 0};
}

int share_processes(int device, int64_t *pids, int64_t *bytes, int most) {
	int n = 0;
	share_lock();
	for (int p = 0; p < PROCESSES; p++) {
		if (!table->processes[p].bytes[device] || !lives(p)) continue;
		if (n < most) pids[n] = table->processes[p].pid, bytes[n] = table->processes[p].bytes[device];
		n++;
	}
	share_unlock();
	return n;
}
