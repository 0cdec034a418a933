// Stands in for OR-Tools' header of this name, which the wheel does not ship. The crate `cp_sat` compiles a C++ wrapper against
// it; all that the wrapper does with a message is to parse, pass and serialize it. Here a message is therefore the bytes of
// its serialized form, and solving goes through the C interface of the library that the process has loaded, or else that the
// system's loader finds; without one, nothing is known of any model. Nothing is linked: the archives in `lib` are empty.
//
// The types live in an inline namespace: under their plain names they would collide with those of the library.
#pragma once

#include <dlfcn.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace operations_research {
inline namespace wire {
namespace sat {

struct Message {
  std::string bytes;

  bool ParseFromArray(const void* data, int size) {
    bytes.assign(static_cast<const char*>(data), size);
    return true;
  }
  size_t ByteSizeLong() const { return bytes.size(); }
  bool SerializeToArray(void* data, int size) const {
    std::memcpy(data, bytes.data(), size);
    return true;
  }
};

struct CpModelProto : Message {};
struct SatParameters : Message {};
struct CpSolverResponse : Message {};

using Solver = void(const void* model, int model_size, const void* parameters, int parameters_size, void** response,
                    int* response_size);

inline Solver* solver() {
  void* library = dlopen("libortools.so.9", RTLD_LAZY);
  return library ? reinterpret_cast<Solver*>(dlsym(library, "SolveCpModelWithParameters")) : nullptr;
}

inline CpSolverResponse SolveWithParameters(const CpModelProto& model, const SatParameters& parameters) {
  CpSolverResponse response;
  Solver* solve = solver();
  if (!solve) return response;
  void* data = nullptr;
  int size = 0;
  solve(model.bytes.data(), static_cast<int>(model.bytes.size()), parameters.bytes.data(),
        static_cast<int>(parameters.bytes.size()), &data, &size);
  response.bytes.assign(static_cast<const char*>(data), size);
  std::free(data);
  return response;
}

inline CpSolverResponse Solve(const CpModelProto& model) { return SolveWithParameters(model, SatParameters()); }

// The C interface has nothing of this kind: texts are empty, and no model is found wanting. Nothing here calls them.
inline std::string CpModelStats(const CpModelProto&) { return ""; }
inline std::string CpSolverResponseStats(const CpSolverResponse&, bool) { return ""; }
inline std::string ValidateCpModel(const CpModelProto&) { return ""; }
inline bool SolutionIsFeasible(const CpModelProto&, const std::vector<int64_t>&) { return true; }

}  // namespace sat
}  // namespace wire
}  // namespace operations_research
