/* Loads the loadable form of a model, a folder that `remat-opt model.onnx -o DIR --process` writes. C99 and C++; include it after onnxruntime_c_api.h,
 * in one source file or several.
 *
 *     remat_process process;
 *     if (remat_process_find("DIR", OrtGetApiBase()->GetVersionString(), &process) != 0) { ... process.why ... }
 *     api->CreateSessionOptions(&options);
 *     status = remat_process_set(api, options, &process);
 *     api->CreateSession(environment, process.model, options, &session);
 *
 * The optimized model is for one version of ONNX Runtime and for processors with the same features. Where this is another one, the portable model is
 * taken, and `why` says so. The sizes of the files are compared, and not their hashes.
 */
#ifndef REMAT_PROCESS_H
#define REMAT_PROCESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REMAT_PROCESS_PATH = 4096, REMAT_PROCESS_WHY = 512 };

/* What a session loads, and what its options need. */
typedef struct remat_process {
    char model[REMAT_PROCESS_PATH];   /* the model */
    char plan[REMAT_PROCESS_PATH];    /* its plan of memory; empty without one */
    char library[REMAT_PROCESS_PATH]; /* the library that follows it */
    int level;                        /* its graph optimization level, a GraphOptimizationLevel */
    uint64_t resident_weights_bytes;  /* so many bytes of the weights stay in memory; 0: all of them */
    int is_portable;                  /* 1: the portable model, because of `why` */
    uint64_t must_be_there_bytes;     /* what the process takes: memory that no page can be dropped of */
    uint64_t may_be_dropped_bytes;    /* and pages of files */
    char why[REMAT_PROCESS_WHY];      /* why there is none, or why it is the portable one; empty otherwise */
} remat_process;

/* A path in the folder; 0 if it fits. */
static inline int remat_process_path(char *path, const char *folder, const char *name, const char *end) {
    int length = snprintf(path, REMAT_PROCESS_PATH, "%s/%s%s", folder, name, end);
    return length < 0 || length >= REMAT_PROCESS_PATH;
}

/* Whether a file of the folder has so many bytes. */
static inline int remat_process_has(const char *folder, const char *name, uint64_t bytes) {
    char path[REMAT_PROCESS_PATH];
    FILE *file = remat_process_path(path, folder, name, "") == 0 ? fopen(path, "rb") : NULL;
    long size = -1;
    if (file != NULL) {
        size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
        fclose(file);
    }
    return size >= 0 && (uint64_t)size == bytes;
}

/* Whether a list of words that blanks separate has a word. */
static inline int remat_process_lists(const char *list, const char *word) {
    size_t length = strlen(word);
    const char *at = list;
    while ((at = strstr(at, word)) != NULL) {
        int begins = at == list || at[-1] == ' ' || at[-1] == '\t';
        char after = at[length];
        if (begins && (after == ' ' || after == '\n' || after == '\0')) {
            return 1;
        }
        at += length;
    }
    return 0;
}

/* The features of this processor as the system lists them; empty where it does not. */
static inline void remat_process_features(char *features, size_t room) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    features[0] = '\0';
    if (file == NULL) {
        return;
    }
    while (fgets(features, (int)room, file) != NULL) {
        if (strncmp(features, "flags", 5) == 0 || strncmp(features, "Features", 8) == 0) {
            break;
        }
        features[0] = '\0';
    }
    fclose(file);
}

/* The architecture that this program was compiled for. */
static inline const char *remat_process_architecture(void) {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "another architecture";
#endif
}

/* Says why the optimized model is not for this processor, which the manifest describes in `wanted`; 0 if it is. */
static inline int remat_process_differs(char *wanted, char *why) {
    static char features[16384];
    char *word = strtok(wanted, " \n");
    if (word == NULL || strcmp(word, remat_process_architecture()) != 0) {
        snprintf(why, REMAT_PROCESS_WHY, "it was made for %s, and this is %s", word == NULL ? "?" : word, remat_process_architecture());
        return 1;
    }
    remat_process_features(features, sizeof features);
    while ((word = strtok(NULL, " \n")) != NULL) {
        int lacks = word[0] == '!';
        if (remat_process_lists(features, word + lacks) == lacks) {
            snprintf(why, REMAT_PROCESS_WHY, "it was made for a processor with%s `%s`", lacks ? "out" : "", word + lacks);
            return 1;
        }
    }
    return 0;
}

static inline int remat_process_level(const char *level) {
    static const char *const names[] = {"off", "basic", "extended"};
    int at;
    for (at = 0; at < 3; at++) {
        if (strcmp(level, names[at]) == 0) {
            return at;
        }
    }
    return 99;
}

/* Makes the path of a file that is not there empty. */
static inline void remat_process_clear_missing(char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        path[0] = '\0';
    } else {
        fclose(file);
    }
}

/* Finds the model of a loadable form that this process takes; `version`: that of ONNX Runtime. 0 if there is one; else `why` says why not. */
static inline int remat_process_find(const char *folder, const char *version, remat_process *found) {
    char line[REMAT_PROCESS_PATH], path[REMAT_PROCESS_PATH], models[2][256] = {"", ""}, levels[2][32] = {"", ""};
    FILE *file;
    int chosen;
    memset(found, 0, sizeof *found);
    file = remat_process_path(path, folder, "process.remat", "") == 0 ? fopen(path, "r") : NULL;
    if (file == NULL || fgets(line, sizeof line, file) == NULL || strcmp(line, "remat-process 1\n") != 0) {
        snprintf(found->why, REMAT_PROCESS_WHY, "the folder is no loadable form of this version: it has no process.remat that is one");
        if (file != NULL) {
            fclose(file);
        }
        return 1;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        char key[32], word[256];
        unsigned long long bytes = 0, others = 0;
        int words = sscanf(line, "%31s %255s %llu %llu", key, word, &bytes, &others);
        int is_portable = strncmp(line, "portable", 8) == 0;
        if (words >= 2 && strcmp(key, "runtime") == 0 && strcmp(word, version) != 0) {
            snprintf(found->why, REMAT_PROCESS_WHY, "it was made for ONNX Runtime %s, and this is %.64s", word, version);
            found->is_portable = 1;
        } else if (strcmp(key, "processor") == 0 && !found->is_portable) {
            found->is_portable = remat_process_differs(line + 10, found->why);
        } else if (words >= 2 && (strcmp(key, "level") == 0 || strcmp(key, "portable-level") == 0)) {
            snprintf(levels[is_portable], sizeof levels[0], "%.31s", word);
        } else if (strcmp(key, "resident") == 0) {
            found->resident_weights_bytes = strtoull(word, NULL, 10);
        } else if (words == 4 && strcmp(key, "promise") == 0 && strcmp(word, "c") == 0) {
            found->must_be_there_bytes = bytes;
            found->may_be_dropped_bytes = others;
        } else if (words >= 3 && strcmp(key, "promise") != 0) {
            if (!remat_process_has(folder, word, bytes)) {
                snprintf(found->why, REMAT_PROCESS_WHY, "it is incomplete: `%s` is not the file of %llu bytes that was written", word, bytes);
                fclose(file);
                return 1;
            }
            if (strcmp(key, "file") != 0) {
                snprintf(models[is_portable], sizeof models[0], "%s", word);
            }
        }
    }
    fclose(file);
    chosen = found->is_portable;
    if (chosen) {
        found->resident_weights_bytes = 0; /* the order in which the portable model reads its weights is not known */
    }
    found->level = remat_process_level(levels[chosen]);
    if (remat_process_path(found->model, folder, models[chosen], "") != 0 || remat_process_path(found->plan, folder, models[chosen], ".arena") != 0 ||
        remat_process_path(found->library, folder, "libremat_arena.so", "") != 0) {
        snprintf(found->why, REMAT_PROCESS_WHY, "the name of the folder is too long");
        return 1;
    }
    remat_process_clear_missing(found->plan);
    remat_process_clear_missing(found->library);
    return 0;
}

#ifdef ORT_API_VERSION
/* Sets what sessions of the model need. */
static inline OrtStatusPtr remat_process_set(const OrtApi *api, OrtSessionOptions *options, const remat_process *process) {
    OrtStatusPtr status = api->SetSessionGraphOptimizationLevel(options, (GraphOptimizationLevel)process->level);
    /* First the plan, then the library, which reads the entries. Without a plan it has the operators of models that move results. */
    if (status == NULL && process->plan[0] != '\0') {
        status = api->AddSessionConfigEntry(options, "remat.arena.plan", process->plan);
    }
    if (status == NULL && process->plan[0] != '\0' && process->resident_weights_bytes != 0) {
        char bytes[24];
        snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)process->resident_weights_bytes);
        status = api->AddSessionConfigEntry(options, "remat.weights.resident", bytes);
    }
    return status != NULL || process->library[0] == '\0' ? status : api->RegisterCustomOpsLibrary_V2(options, process->library);
}
#endif

#endif
