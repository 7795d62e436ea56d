// A space file in a program that writes numbers as its user does.
#include <stdlib.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space::test;

namespace {

/// The locale of a German user, compiled for the test, since few machines have it: the program's as
/// long as this lives.
class GermanLocale {
 public:
  GermanLocale() {
    const std::string command = "localedef -i de_DE -f UTF-8 '" + folder_.path("de_DE.UTF-8") +
                                "' >'" + folder_.path("out") + "' 2>&1";
    (void)!std::system(command.c_str());
    setenv("LOCPATH", folder_.path("").c_str(), 1);
    is_set_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  }
  ~GermanLocale() {
    (void)std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }
  GermanLocale(const GermanLocale&) = delete;
  GermanLocale& operator=(const GermanLocale&) = delete;

  [[nodiscard]] bool is_set() const { return is_set_; }

 private:
  Folder folder_;
  bool is_set_ = false;
};

}  // namespace

TEST_CASE("Numbers read and are written alike whatever the program's locale is") {
  const GermanLocale german;
  if (!german.is_set()) {
    WARN("skipped: there is no localedef, or no definition of de_DE");
    return;
  }
  REQUIRE(std::string(std::localeconv()->decimal_point) == ",");
  CHECK(load_error("assert(tostring(0.5) == '0.5', tostring(0.5))").empty());
  CHECK(load_error("assert(0.5 .. '' == '0.5')").empty());
  CHECK(load_error("assert(string.format('%.2f', 1.5) == '1.50')").empty());
  CHECK(load_error("assert(tonumber('0.5') == 0.5 and tonumber('0,5') == nil)").empty());
  // Which comes first must not differ between processes either.
  CHECK(load_error("assert('B' < 'a')").empty());
  // The program's is as it was, after an error, too.
  CHECK(contains(load_error("error('wrong')"), "wrong"));
  char text[8];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  CHECK(std::string(text) == "0,5");
}
