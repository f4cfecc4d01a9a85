#include "base/program_imports.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

bool skips_nothing(std::string_view) { return false; }

TEST(AnythingImports, LooksIntoLibrariesToo) {
  const auto resolve = [](std::string_view n) { return n == "_dl_find_object"; };
  EXPECT_FALSE(program_imports(resolve));
  EXPECT_TRUE(anything_imports(&skips_nothing, resolve)) << "of libgcc's, or of the C++ library's";
  EXPECT_FALSE(anything_imports(&skips_nothing, [](std::string_view n) { return n == "none"; }));
}

TEST(AnythingImports, SkipsFilesByTheirNames) {
  std::vector<std::string> files;
  const auto skips_all = [&](std::string_view file) {
    files.emplace_back(file);
    return true;
  };
  EXPECT_FALSE(anything_imports(skips_all, [](std::string_view) { return true; }));
  ASSERT_GT(files.size(), 1);
  EXPECT_EQ(files[0], "") << "the program itself";
  EXPECT_TRUE(std::ranges::any_of(files, [](auto& f) { return f.starts_with("libc.so"); }));
}

TEST(AnythingImports, IsAskedAgainWhenALibraryWasLoaded) {
  const uint64_t before = libraries_loaded();
  EXPECT_GT(before, 0);
  EXPECT_EQ(libraries_loaded(), before);
  void* const library = ::dlopen("libutil.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();  // the C library comes with it
  EXPECT_GT(libraries_loaded(), before);
  ::dlclose(library);
}

}  // namespace
}  // namespace penstock::program_imports_test
