/* Prints what the queries of `Remat/RematCAPI.h` say about every operation of the functions in a file. */

#include "Remat/RematCAPI.h"

#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/RegisterEverything.h"

#include <stdio.h>
#include <stdlib.h>

static void print_text(MlirStringRef text, void *unused) {
  (void)unused;
  fwrite(text.data, 1, text.length, stdout);
}

static void print_alias(intptr_t operand, intptr_t result, RematAliasRelation relation, bool written, void *count) {
  static const char *const relations[] = {"is", "overlaps", "may be"};
  printf(", operand %jd %s result %jd%s", (intmax_t)operand, relations[relation], (intmax_t)result,
         written ? " if written" : "");
  ++*(int *)count;
}

static void print_type(MlirType type) {
  mlirTypePrint(type, print_text, NULL);
  printf(" of %jd bytes", (intmax_t)rematTypeGetBytes(type));
  if (rematTypeIsPage(type)) {
    printf(", which holds ");
    mlirTypePrint(rematPageTypeGetTensor(type), print_text, NULL);
    return;
  }
  MlirType page = rematPageTypeGet(type);
  if (mlirTypeIsNull(page)) {
    printf(", no page");
    return;
  }
  printf(", ");
  mlirTypePrint(page, print_text, NULL);
}

static MlirWalkResult print_operation(MlirOperation op, void *unused) {
  (void)unused;
  print_text(mlirIdentifierStr(mlirOperationGetName(op)), NULL);
  printf(":%s%s%s", rematOperationIsMemoryEffectFree(op) ? " free" : "",
         rematOperationIsConstantLike(op) ? " constant" : "", rematOperationIsTerminator(op) ? " terminator" : "");
  int aliases = 0;
  bool known = rematOperationForEachAlias(op, print_alias, &aliases);
  printf("%s\n", !known ? ", aliases unknown" : aliases ? "" : ", no alias");
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    printf("  ");
    print_type(mlirValueGetType(mlirOperationGetResult(op, i)));
    printf("\n");
  }
  return MlirWalkResultAdvance;
}

int main(int count, char **arguments) {
  static char text[1 << 16];
  FILE *file = count == 2 ? fopen(arguments[1], "r") : NULL;
  if (!file)
    return 2;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;

  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirRegisterAllDialects(registry);
  rematRegisterDialect(registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirContextSetAllowUnregisteredDialects(context, true);
  MlirModule module = mlirModuleCreateParse(context, mlirStringRefCreateFromCString(text));
  if (mlirModuleIsNull(module))
    return 1;
  mlirOperationWalk(mlirModuleGetOperation(module), print_operation, NULL, MlirWalkPreOrder);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  mlirDialectRegistryDestroy(registry);
  return 0;
}
