/* What examples and tests use of ONNX Runtime's header of this name, with its types and in its places: that header is not part of the runtime's packages for
 * Python. */
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
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtValue OrtValue;
typedef OrtStatus *OrtStatusPtr;

typedef enum OrtLoggingLevel { ORT_LOGGING_LEVEL_WARNING = 2 } OrtLoggingLevel;
typedef enum OrtAllocatorType { OrtDeviceAllocator = 0 } OrtAllocatorType;
typedef enum OrtMemType { OrtMemTypeDefault = 0 } OrtMemType;
typedef enum ONNXTensorElementDataType {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7
} ONNXTensorElementDataType;
typedef enum GraphOptimizationLevel {
    ORT_DISABLE_ALL = 0,
    ORT_ENABLE_BASIC = 1,
    ORT_ENABLE_EXTENDED = 2,
    ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef struct OrtApi {
    void *unused_0[2];
    const char *(*GetErrorMessage)(const OrtStatus *status);
    OrtStatusPtr (*CreateEnv)(OrtLoggingLevel level, const char *name, OrtEnv **out);
    void *unused_4[3];
    OrtStatusPtr (*CreateSession)(const OrtEnv *env, const char *path, const OrtSessionOptions *options, OrtSession **out);
    void *unused_8[1];
    OrtStatusPtr (*Run)(OrtSession *session, const OrtRunOptions *options, const char *const *inputs, const OrtValue *const *values,
                        size_t count, const char *const *outputs, size_t results, OrtValue **out);
    OrtStatusPtr (*CreateSessionOptions)(OrtSessionOptions **out);
    void *unused_11[12];
    OrtStatusPtr (*SetSessionGraphOptimizationLevel)(OrtSessionOptions *options, GraphOptimizationLevel level);
    OrtStatusPtr (*SetIntraOpNumThreads)(OrtSessionOptions *options, int threads);
    void *unused_25[24];
    OrtStatusPtr (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *info, void *data, size_t bytes, const int64_t *shape, size_t rank,
                                                   ONNXTensorElementDataType type, OrtValue **out);
    void *unused_50[1];
    OrtStatusPtr (*GetTensorMutableData)(OrtValue *value, void **out);
    void *unused_52[12];
    OrtStatusPtr (*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo *info, size_t *out);
    OrtStatusPtr (*GetTensorTypeAndShape)(const OrtValue *value, OrtTensorTypeAndShapeInfo **out);
    void *unused_66[3];
    OrtStatusPtr (*CreateCpuMemoryInfo)(OrtAllocatorType allocator, OrtMemType type, OrtMemoryInfo **out);
    void *unused_70[22];
    void (*ReleaseEnv)(OrtEnv *env);
    void (*ReleaseStatus)(OrtStatus *status);
    void (*ReleaseMemoryInfo)(OrtMemoryInfo *info);
    void (*ReleaseSession)(OrtSession *session);
    void (*ReleaseValue)(OrtValue *value);
    void *unused_97[2];
    void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *info);
    void (*ReleaseSessionOptions)(OrtSessionOptions *options);
    void *unused_101[29];
    OrtStatusPtr (*AddSessionConfigEntry)(OrtSessionOptions *options, const char *key, const char *value);
    void *unused_131[97];
    OrtStatusPtr (*RegisterCustomOpsLibrary_V2)(OrtSessionOptions *options, const char *library);
} OrtApi;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);

#endif
