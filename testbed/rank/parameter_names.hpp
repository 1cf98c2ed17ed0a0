#pragma once

#include <string>

#include "gradsync/testbed/scenario/scenario.hpp"

namespace gradsync {

/// Checks the names of parameters in faults, `ddp.params_and_buffers_to_ignore` and
/// `optimizer.param_groups` against the scenario's model, before any rank starts. Each may be a
/// pattern ("*.bias"), and each must mean at least one parameter (or buffer, for DDP). Throws
/// ConfigError with `file`, the JSON pointer and the nearest name.
///
/// Only a scenario with such names has its model built, without payload.
void check_parameter_names(const Scenario& scenario, const std::string& file);

}  // namespace gradsync
