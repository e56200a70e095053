// What is looked up by name.
//
// dlsym is ours, because cuDNN finds cuBLASLt with it and would get the real
// one, which needs a device. Every other call must reach the C library's as if
// it came from the caller: that looks at the return address to know whose
// scope is meant. So this ends in a jump, which gcc makes of a call in return
// position at -O2.
#define _GNU_SOURCE
#include "emulate.h"

#include <dlfcn.h>
#include <string.h>

int cublasLtCreate(handle *);
int cublasLtMatmulAlgoGetHeuristic(handle, handle, handle, handle, handle, handle, handle, int, void *, int *);

static void *(*real_dlsym)(void *, const char *);

static void find_dlsym(void) {
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
	for (int i = 0; i < 3 && !real_dlsym; i++) real_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
}

EXPORT void *dlsym(void *library, const char *name) {
	if (__builtin_expect(!real_dlsym, 0)) find_dlsym();
	if (library != RTLD_NEXT && library != RTLD_DEFAULT && !strncmp(name, "cublasLt", 8)) {
		if (!strcmp(name, "cublasLtCreate")) return cublasLtCreate;
		if (!strcmp(name, "cublasLtDestroy") || !strcmp(name, "cublasLtMatmul") || !strcmp(name, "cublasLtMatrixTransform")) return nothing;
		if (!strcmp(name, "cublasLtMatmulAlgoGetHeuristic")) return cublasLtMatmulAlgoGetHeuristic;
	}
	return real_dlsym(library, name);
}

void *next_symbol(const char *name) {
	if (!real_dlsym) find_dlsym();
	void *found = real_dlsym(RTLD_NEXT, name);
	return found;
}

// loaded_symbol is one of a library that the program has loaded, under the newer
// name or the older, or 0.
static void *loaded_symbol(void **library, const char *newer, const char *older, const char *name) {
	if (!*library) *library = dlopen(newer, RTLD_LAZY | RTLD_NOLOAD);
	if (!*library) *library = dlopen(older, RTLD_LAZY | RTLD_NOLOAD);
	if (!*library) return 0;
	if (!real_dlsym) find_dlsym();
	return real_dlsym(*library, name);
}
void *cudnn_symbol(const char *name) {
	static void *library;
	return loaded_symbol(&library, "libcudnn.so.9", "libcudnn.so.8", name);
}
void *cusparse_symbol(const char *name) {
	static void *library;
	return loaded_symbol(&library, "libcusparse.so.12", "libcusparse.so.11", name);
}
