/* Opens a model with the plan of its memory, runs it at several sizes of its batch, and prints what the library counted.
 *
 *     remat-opt model.onnx -o planned.onnx --budget none --shapes batch=1..64
 *     cc planned.c -I ORT/include -I remat-opt/passes/onnxruntime/arena/c ./libremat_arena.so -L ORT/lib -lonnxruntime -o planned
 *     ./planned planned.onnx x y 256
 *
 * The arguments: the model, its input and its output by name, and the numbers that one member of the batch has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnxruntime_c_api.h"
#include "remat_arena.h"

static const OrtApi *api;

/* Ends the program where the runtime says that something is wrong. */
static void check(OrtStatusPtr status) {
    if (status != NULL) {
        fprintf(stderr, "%s\n", api->GetErrorMessage(status));
        api->ReleaseStatus(status);
        exit(1);
    }
}

/* One run with so many members of the batch. */
static void run(OrtSession *session, const OrtMemoryInfo *memory, char **names, int64_t members, size_t numbers) {
    int64_t shape[2];
    size_t count = (size_t)members * numbers;
    float *data = calloc(count, sizeof *data);
    OrtValue *input = NULL, *output = NULL;
    if (data == NULL) {
        fprintf(stderr, "there is no memory for %zu numbers\n", count);
        exit(1);
    }
    shape[0] = members;
    shape[1] = (int64_t)numbers;
    check(api->CreateTensorWithDataAsOrtValue(memory, data, count * sizeof *data, shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
    {
        const char *in = names[0], *out = names[1];
        const OrtValue *given = input;
        check(api->Run(session, NULL, &in, &given, 1, &out, 1, &output));
    }
    /* An output lies in the block: the next run takes another one as long as it is held. */
    api->ReleaseValue(output);
    api->ReleaseValue(input);
    free(data);
}

int main(int count, char **arguments) {
    OrtEnv *environment = NULL;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    OrtMemoryInfo *memory = NULL;
    remat_arena_figures figures = {0};
    char plan[4096];
    int64_t members;
    long numbers;

    if (count != 5 || (numbers = strtol(arguments[4], NULL, 10)) <= 0) {
        fprintf(stderr, "usage: %s MODEL INPUT OUTPUT NUMBERS\n", arguments[0]);
        return 2;
    }
    snprintf(plan, sizeof plan, "%s.arena", arguments[1]);
    api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (api == NULL) {
        fprintf(stderr, "this ONNX Runtime is older than its header\n");
        return 1;
    }
    check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "planned", &environment));
    check(api->CreateSessionOptions(&options));
    /* First the plan, then the library, which reads the entries. */
    check(api->AddSessionConfigEntry(options, "remat.arena.plan", plan));
    check(api->RegisterCustomOpsLibrary_V2(options, "./libremat_arena.so"));
    check(api->CreateSession(environment, arguments[1], options, &session));
    check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    for (members = 1; members <= 16; members *= 2) {
        run(session, memory, &arguments[2], members, (size_t)numbers);
    }
    remat_arena_stats(0, &figures, sizeof figures);
    printf("%" PRIu64 " runs, %" PRIu64 " shapes\n", figures.runs, figures.shapes);
    printf("%" PRIu64 " buffers in their places, %" PRIu64 " outside by plan\n", figures.placed, figures.planned_outside);
    printf("%" PRIu64 " unforeseen, %" PRIu64 " whose place was taken\n", figures.missed, figures.refused);
    printf("%" PRIu64 " bytes of memory in blocks, %" PRIu64 " at most\n", figures.used_bytes, figures.most_used_bytes);
    api->ReleaseMemoryInfo(memory);
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(environment);
    return 0;
}
