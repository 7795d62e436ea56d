#include "intercept/host/name_pattern.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <contextune/error.hpp>
#include <string>
#include <string_view>

#include "catch.hpp"

using contextune::Error;
using contextune::intercept::NamePattern;

namespace {

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// "found", "not found", or what is wrong with the expression.
std::string look_for(const std::string& expression, const std::string& name) {
  try {
    return NamePattern(expression).finds(name) ? "found" : "not found";
  } catch (const Error& error) {
    return error.what();
  }
}

// Whether a thread with little stack gets such an answer. In a process of its own, which ends where
// there is not enough.
bool is_answered_on_a_small_stack(const std::string& expression, std::string_view answer) {
  constexpr std::size_t stack_bytes = 48 << 10;
  const pid_t child = fork();
  if (child == 0) {
    struct Question {
      const std::string& expression;
      std::string_view answer;
      bool answered = false;
    } question{expression, answer};
    pthread_attr_t attributes;
    pthread_t thread{};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    const auto ask = [](void* asked) -> void* {
      auto& mine = *static_cast<Question*>(asked);
      mine.answered = look_for(mine.expression, "gemm").find(mine.answer) != std::string::npos;
      return nullptr;
    };
    pthread_create(&thread, &attributes, ask, &question);
    pthread_join(thread, nullptr);
    _exit(question.answered ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status == 0;
}

}  // namespace

TEST_CASE("A regular expression looks for something in a name", "[name_pattern]") {
  CHECK(look_for("^gemm<[0-9]+, (64|128)>$", "gemm<64, 128>") == "found");
  CHECK(look_for("[]a(*]{2,3}", "(a") == "found");
  CHECK(look_for("gemm|[[:digit:](]*x\\(", "axpy") == "not found");
  CHECK(look_for("a{3,}b?c+", "aaacc") == "found");
  CHECK(look_for("(", "x").find("cannot be read") != std::string::npos);
  CHECK(look_for("(a)\\1", "aa").find("back reference") != std::string::npos);
}

TEST_CASE("A regular expression that libc would compile for seconds is refused", "[name_pattern]") {
  const std::string too_much = "its repetitions are too much when they are written out";
  for (const std::string& expression :
       {std::string("((a{1,200}){1,200}){1,200}"), std::string("(a{1,100}){1,100}"),
        repeated("a?", 300), repeated("(", 20) + "a" + repeated("+)", 20),
        std::string("a{5000}")}) {
    INFO(expression);
    CHECK(look_for(expression, "a").find(too_much) != std::string::npos);
  }
  CHECK(look_for(repeated("ab", 2049), "a").find("more than 4096 characters") != std::string::npos);
  CHECK(look_for(repeated("kernel|", 500) + "gemm", "gemm") == "found");
  CHECK(look_for("(a{1,15}){1,15}", "aaa") == "found");
}

TEST_CASE("A regular expression needs no more stack than a small thread has", "[name_pattern]") {
  CHECK(is_answered_on_a_small_stack(repeated("(", 2000) + "a" + repeated(")", 2000),
                                     "nested more than 50 deep"));
  CHECK(is_answered_on_a_small_stack(repeated("(", 50) + "gemm" + repeated(")", 50), "found"));
  CHECK(is_answered_on_a_small_stack(repeated("a|", 2000) + "m", "found"));
}
