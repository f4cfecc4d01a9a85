#include "base/program_imports.hpp"

#include <gtest/gtest.h>

namespace penstock::program_imports_test {
namespace {

bool imports(std::string_view name) {
  return program_imports([&](std::string_view n) { return n == name; });
}

// This program calls it, wherever the C library is a shared one.
TEST(ProgramImports, HasWhatTheProgramTakesFromLibraries) {
  EXPECT_TRUE(imports("dl_iterate_phdr"));
}

TEST(ProgramImports, HasNothingElse) {
  EXPECT_FALSE(imports("MPI_File_sync"));
  EXPECT_FALSE(imports(""));
  EXPECT_FALSE(imports("main")) << "it is defined here";
}

TEST(ProgramImports, EndsWithTheFirstThatIsWanted) {
  int asked = 0;
  EXPECT_TRUE(program_imports([&](std::string_view) { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace penstock::program_imports_test
