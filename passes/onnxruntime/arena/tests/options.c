/* Opens functions without a plan, and says what the provider is told; a plan that is not there is an error in words. */
#include "remat_cuda.h"

#include <stdlib.h>
#include <string.h>

int main(void) {
    remat_cuda_settings settings = {NULL, NULL, -1, 0};
    remat_cuda_functions functions;
    remat_cuda_provider provider;
    const char *why = remat_cuda_open(&settings, &functions);
    if (why != NULL) return 1;
    remat_cuda_options(&functions, &provider);
    printf("%s %s %s %s\n", provider.keys[0], provider.keys[1], provider.keys[2], provider.session);
    if (strtoull(provider.values[1], NULL, 10) != (uintptr_t)functions.free) return 2;
    remat_cuda_close(functions.session);
    settings.plan = "/nowhere/model.onnx.arena";
    why = remat_cuda_open(&settings, &functions);
    return why != NULL && strstr(why, "/nowhere/model.onnx.arena") != NULL ? 0 : 3;
}
