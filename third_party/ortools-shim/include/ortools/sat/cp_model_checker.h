// Stands in for OR-Tools' header of this name; see cp_model.h.
#pragma once

#include "cp_model.h"
