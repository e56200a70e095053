// cuDNN: a handle that is none.
//
// From 9.8 on cuDNN's graph API plans for a device that is only described
// ("deviceless", CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Where PyTorch hands over
// a handle, the description goes in its place, so that heuristics, engines and
// workspaces are cuDNN's own answers for that card. On an H200 they choose the
// engines and knobs that they choose with a handle.
#include "emulate.h"
#include "dnn.h"
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Attributes and types of cudnn_backend.h.
enum {
	ENGINEHEUR_OPERATION_GRAPH = 201, ENGINEHEUR_RESULTS = 202, ENGINEHEUR_DEVICEPROP = 204,
	ENGINECFG_ENGINE = 300,
	PLAN_HANDLE = 400, PLAN_ENGINE_CONFIG = 401, PLAN_WORKSPACE_SIZE = 402, PLAN_JSON = 405, PLAN_DEVICEPROP = 407,
	GRAPH_HANDLE = 800, GRAPH_ENGINE_GLOBAL_COUNT = 802,
	ENGINE_OPERATION_GRAPH = 1300, ENGINE_GLOBAL_INDEX = 1301, ENGINE_NUMERICAL_NOTE = 1303, ENGINE_DEVICEPROP = 1307,
	DEVICEPROP_JSON = 2702,
	ENGINE_DESCRIPTOR = 2, ENGINECFG_DESCRIPTOR = 3, DEVICEPROP_DESCRIPTOR = 38,
	TYPE_NUMERICAL_NOTE = 11, TYPE_DESCRIPTOR = 15, TYPE_CHAR = 24,
};

typedef int create_fn(int type, handle *d);
typedef int set_fn(handle d, int attribute, int type, int64_t n, const void *value);
typedef int get_fn(handle d, int attribute, int type, int64_t n, int64_t *count, void *value);
typedef int one_fn(handle d);

static struct { create_fn *create; set_fn *set; get_fn *get; one_fn *finalize, *destroy; } real;

static int found(void) {
	if (real.destroy) return 1;
	real.create = cudnn_symbol("cudnnBackendCreateDescriptor");
	real.set = cudnn_symbol("cudnnBackendSetAttribute");
	real.get = cudnn_symbol("cudnnBackendGetAttribute");
	real.finalize = cudnn_symbol("cudnnBackendFinalize");
	real.destroy = cudnn_symbol("cudnnBackendDestroyDescriptor");
	return real.destroy != 0;
}

// The device as cuDNN describes one: its own JSON of an H200 has these keys.
static handle describe(void) {
	const struct card *c = card();
	char json[1024];
	handle d = 0;
	int n = snprintf(json, sizeof json,
		"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":%d,"
		"\"warpSize\":32,\"maxSharedMemoryPerBlock\":%ld,\"maxSharedMemoryPerBlockOptin\":%ld,\"reservedSharedMemoryPerBlock\":1024,"
		"\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,"
		"\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":%ld,\"smClockRateKHz\":%d,\"memClockRateKHz\":%d,"
		"\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":%d,\"deviceName\":\"%s\"}",
		c->multiprocessors, c->shared_per_block, c->shared_optin, c->blocks_per_multiprocessor, c->threads_per_multiprocessor,
		c->memory, c->clock_khz, c->memory_clock_khz, c->l2, c->major * 100 + c->minor * 10, c->driver, c->name);
	if (!found() || real.create(DEVICEPROP_DESCRIPTOR, &d)) return 0;
	if (real.set(d, DEVICEPROP_JSON, TYPE_CHAR, n, json) || real.finalize(d)) return 0;
	return d;
}

static handle described(void) {
	static handle d;
	static int tried;
	if (!tried) {
		tried = 1;
		d = describe();
		if (!d) fprintf(stderr, "memorymark: this cuDNN plans nothing without a device: workspaces of convolutions are taken to be 0\n");
	}
	return d;
}

// --- cuDNN before 9.8: descriptors are empty shells, heuristics have one
// answer, and its workspace is 0.
static int shell_get(int attribute, int type, int64_t n, int64_t *count, void *value) {
	static const int size[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8}; // of cudnnBackendAttributeType_t
	int is_descriptor = attribute == ENGINEHEUR_RESULTS || attribute == ENGINECFG_ENGINE || attribute == PLAN_ENGINE_CONFIG || attribute == ENGINE_OPERATION_GRAPH;
	int has_value = attribute == PLAN_WORKSPACE_SIZE || attribute == ENGINE_GLOBAL_INDEX || attribute == GRAPH_ENGINE_GLOBAL_COUNT;
	if (count) *count = is_descriptor || has_value;
	if (value && n && has_value) memset(value, 0, type >= 0 && type < 16 ? size[type] : 4);
	if (value && n && attribute == GRAPH_ENGINE_GLOBAL_COUNT) *(int64_t *)value = 1;
	return 0;
}

EXPORT int cudnnCreate(handle *h) { return *h = fresh(), 0; }
EXPORT int cudnnDestroy(handle h) { return 0; }
EXPORT int cudnnSetStream(handle h, handle s) { return 0; }
EXPORT int cudnnGetStream(handle h, handle *s) { return *s = 0, 0; }

EXPORT int cudnnBackendCreateDescriptor(int type, handle *d) {
	if (described()) return real.create(type, d);
	return *d = calloc(1, 64), 0;
}
EXPORT int cudnnBackendInitialize(handle d) { return 0; }
EXPORT int cudnnBackendDestroyDescriptor(handle d) {
	if (described()) return real.destroy(d);
	return free(d), 0;
}
EXPORT int cudnnBackendSetAttribute(handle d, int attribute, int type, int64_t n, const void *value) {
	handle device = described();
	if (!device || attribute == GRAPH_HANDLE) return 0;
	if (attribute == PLAN_HANDLE) return real.set(d, PLAN_DEVICEPROP, TYPE_DESCRIPTOR, 1, &device);
	int status = real.set(d, attribute, type, n, value);
	if (!status && attribute == ENGINEHEUR_OPERATION_GRAPH) real.set(d, ENGINEHEUR_DEVICEPROP, TYPE_DESCRIPTOR, 1, &device);
	if (!status && attribute == ENGINE_OPERATION_GRAPH) real.set(d, ENGINE_DEVICEPROP, TYPE_DESCRIPTOR, 1, &device);
	return status;
}

// What plans ask of the card, by their descriptors. PyTorch asks every plan for
// its workspace, which is when it is looked at.
enum { PLANS = 1 << 12 };
static struct { handle plan; struct work work; } plans[PLANS];

static int plan_slot(handle plan) {
	int i = (uintptr_t)plan / 16 % PLANS;
	for (int n = 0; n < PLANS && plans[i].plan && plans[i].plan != plan; n++) i = (i + 1) % PLANS;
	return i;
}

// notes are what cuDNN says of a plan's engine, a bit for each cudnnBackendNumericalNote_t.
static unsigned notes(handle plan) {
	handle config = 0, engine = 0;
	int64_t n = 0;
	int list[32] = {0};
	unsigned bits = 0;
	if (real.create(ENGINECFG_DESCRIPTOR, &config) || real.create(ENGINE_DESCRIPTOR, &engine)) return 0;
	if (!real.get(plan, PLAN_ENGINE_CONFIG, TYPE_DESCRIPTOR, 1, &n, &config) && !real.get(config, ENGINECFG_ENGINE, TYPE_DESCRIPTOR, 1, &n, &engine) &&
		!real.get(engine, ENGINE_NUMERICAL_NOTE, TYPE_NUMERICAL_NOTE, 32, &n, list))
		for (int i = 0; i < n && i < 32; i++) bits |= list[i] >= 0 && list[i] < 32 ? 1u << list[i] : 0;
	real.destroy(engine);
	real.destroy(config);
	return bits;
}

static void planned(handle plan, const char *json) {
	int i = plan_slot(plan);
	plans[i].plan = plan; // of a full table, another's
	plan_work(json, notes(plan), &plans[i].work);
}

EXPORT int cudnnBackendFinalize(handle d) { return described() ? real.finalize(d) : 0; }
EXPORT int cudnnBackendGetAttribute(handle d, int attribute, int type, int64_t n, int64_t *count, void *value) {
	if (!described()) return shell_get(attribute, type, n, count, value);
	int status = real.get(d, attribute, type, n, count, value);
	if (status || attribute != PLAN_WORKSPACE_SIZE || !value || n < 1) return status;
	static __thread char json[1 << 18];
	int64_t length = 0;
	if (!real.get(d, PLAN_JSON, TYPE_CHAR, sizeof json - 1, &length, json) && length < (int64_t)sizeof json) {
		json[length] = 0;
		planned(d, json);
		*(int64_t *)value = plan_workspace(json, *(int64_t *)value);
	}
	return 0;
}
EXPORT int cudnnBackendExecute(handle h, handle plan, handle variants) {
	emulate_launched();
	int i = plan_slot(plan);
	if (plans[i].plan == plan) work_add(&plans[i].work);
	return 0;
}

// --- what is not a graph yet computes nothing
EXPORT int cudnnPoolingForward(void) { return 0; }
EXPORT int cudnnSpatialTfSamplerForward(void) { return 0; }
EXPORT int cudnnSpatialTfSamplerBackward(void) { return 0; }
EXPORT int cudnnSpatialTfGridGeneratorForward(void) { return 0; }
EXPORT int cudnnSpatialTfGridGeneratorBackward(void) { return 0; }
