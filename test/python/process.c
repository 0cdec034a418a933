/* Loads a loadable form and runs it as often as is said, on the input in a file; prints whether every run gave the same bits, and a sum of them.
 *
 *     process DIR RUNS INPUT OUTPUT NUMBERS
 *
 * `INPUT` is a tensor of floats, one for each of 1 x NUMBERS; the values are those of a generator.
 */
#include "onnxruntime_c_api.h"
#include "remat_process.h"

static const OrtApi *api;

static void check(OrtStatusPtr status) {
    if (status != NULL) {
        fprintf(stderr, "%s\n", api->GetErrorMessage(status));
        exit(1);
    }
}

/* A hash of the bits of a value (FNV-1a). */
static uint64_t hash(OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    unsigned char *bytes = NULL;
    size_t count = 0, at;
    uint64_t sum = 14695981039346656037u;
    check(api->GetTensorTypeAndShape(value, &info));
    check(api->GetTensorShapeElementCount(info, &count));
    check(api->GetTensorMutableData(value, (void **)&bytes));
    for (at = 0; at < count * sizeof(float); at++) {
        sum = (sum ^ bytes[at]) * 1099511628211u;
    }
    api->ReleaseTensorTypeAndShapeInfo(info);
    return sum;
}

int main(int count, char **arguments) {
    static remat_process process;
    OrtEnv *environment = NULL;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *input = NULL;
    int64_t shape[2] = {1, 0};
    uint64_t first = 0;
    float *data;
    long runs, run;
    size_t at;

    if (count != 6) {
        fprintf(stderr, "usage: %s DIR RUNS INPUT OUTPUT NUMBERS\n", arguments[0]);
        return 2;
    }
    runs = strtol(arguments[2], NULL, 10);
    shape[1] = strtol(arguments[5], NULL, 10);
    api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (remat_process_find(arguments[1], OrtGetApiBase()->GetVersionString(), &process) != 0) {
        fprintf(stderr, "%s\n", process.why);
        return 1;
    }
    check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "process", &environment));
    check(api->CreateSessionOptions(&options));
    check(api->SetIntraOpNumThreads(options, 1));
    check(remat_process_set(api, options, &process));
    check(api->CreateSession(environment, process.model, options, &session));
    check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    data = malloc((size_t)shape[1] * sizeof *data);
    for (at = 0; at < (size_t)shape[1]; at++) {
        data[at] = (float)((at * 37 + 11) % 101) / 101.0f - 0.5f;
    }
    check(api->CreateTensorWithDataAsOrtValue(memory, data, (size_t)shape[1] * sizeof *data, shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
    for (run = 0; run < runs; run++) {
        const char *in = arguments[3], *out = arguments[4];
        const OrtValue *given = input;
        OrtValue *output = NULL;
        uint64_t bits;
        check(api->Run(session, NULL, &in, &given, 1, &out, 1, &output));
        bits = hash(output);
        api->ReleaseValue(output);
        if (run == 0) {
            first = bits;
        } else if (bits != first) {
            fprintf(stderr, "run %ld has other bits\n", run);
            return 1;
        }
    }
    printf("%016llx %s\n", (unsigned long long)first, process.is_portable ? process.why : "optimized");
    api->ReleaseValue(input);
    api->ReleaseMemoryInfo(memory);
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(environment);
    free(data);
    return 0;
}
