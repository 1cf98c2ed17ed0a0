// Catch2 2.13 builds its main from this macro; 3.x brings one in a library, and the macro is
// unused.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
