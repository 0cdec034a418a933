/* What examples use of ONNX Runtime's header of this name, with its types and in no order: for a look by a compiler where that header is not installed.
 * Programs that are compiled with this one do not run. */
#ifndef ONNXRUNTIME_C_API_H
#define ONNXRUNTIME_C_API_H

#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 23

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtValue OrtValue;
typedef OrtStatus *OrtStatusPtr;

typedef enum OrtLoggingLevel { ORT_LOGGING_LEVEL_WARNING = 2 } OrtLoggingLevel;
typedef enum OrtAllocatorType { OrtDeviceAllocator = 0 } OrtAllocatorType;
typedef enum OrtMemType { OrtMemTypeDefault = 0 } OrtMemType;
typedef enum ONNXTensorElementDataType { ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 } ONNXTensorElementDataType;

typedef struct OrtApi {
    const char *(*GetErrorMessage)(const OrtStatus *status);
    OrtStatusPtr (*CreateEnv)(OrtLoggingLevel level, const char *name, OrtEnv **out);
    OrtStatusPtr (*CreateSessionOptions)(OrtSessionOptions **out);
    OrtStatusPtr (*AddSessionConfigEntry)(OrtSessionOptions *options, const char *key, const char *value);
    OrtStatusPtr (*RegisterCustomOpsLibrary_V2)(OrtSessionOptions *options, const char *library);
    OrtStatusPtr (*CreateSession)(const OrtEnv *env, const char *path, const OrtSessionOptions *options, OrtSession **out);
    OrtStatusPtr (*CreateCpuMemoryInfo)(OrtAllocatorType allocator, OrtMemType type, OrtMemoryInfo **out);
    OrtStatusPtr (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *info, void *data, size_t bytes, const int64_t *shape, size_t rank,
                                                   ONNXTensorElementDataType type, OrtValue **out);
    OrtStatusPtr (*Run)(OrtSession *session, const OrtRunOptions *options, const char *const *inputs, const OrtValue *const *values,
                        size_t count, const char *const *outputs, size_t results, OrtValue **out);
    void (*ReleaseStatus)(OrtStatus *status);
    void (*ReleaseValue)(OrtValue *value);
    void (*ReleaseMemoryInfo)(OrtMemoryInfo *info);
    void (*ReleaseSession)(OrtSession *session);
    void (*ReleaseSessionOptions)(OrtSessionOptions *options);
    void (*ReleaseEnv)(OrtEnv *env);
} OrtApi;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);

#endif
