// Programs that have nothing to do with CUDA do, under the frontend, exactly what they do without.
#include <sys/stat.h>

#include <algorithm>
#include <iostream>

#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

namespace {

void check_identical(const std::vector<std::string>& command, const Environment& environment = {},
                     const std::string& input = {}) {
  const Outcome bare = run(command, environment, input);
  const Outcome preloaded = run_preloaded(command, environment, input);
  INFO("command: " << command.front());
  INFO("without: " << bare.out << bare.err);
  INFO("with: " << preloaded.out << preloaded.err);
  CHECK(preloaded.status == bare.status);
  CHECK(preloaded.out == bare.out);
  CHECK(preloaded.err == bare.err);
}

/// Absent programs are named; a corpus of nothing would prove nothing.
bool present(const std::string& program) {
  if (installed(program)) return true;
  std::cerr << "skipped: " << program << " is not installed\n";
  return false;
}

}  // namespace

TEST_CASE("sh, with pipes, children and a failing command", "[corpus]") {
  check_identical(
      {"sh", "-c", "printf 'b\\na\\n' | sort; echo done >&2; (exit 3); echo $?; exit 7"});
  check_identical({"sh"}, {}, "echo from input\nfalse\n");
  check_identical({"sh", "-c", "kill -TERM $$"});
}

TEST_CASE("git", "[corpus]") {
  if (!present("git")) return;
  check_identical({"git", "--version"});
  check_identical({"git", "hash-object", "--stdin"}, {}, "content\n");
  check_identical({"git", "no-such-command"});
}

TEST_CASE("python3, with modules that look symbols up", "[corpus]") {
  if (!present("python3")) return;
  check_identical({"python3", "-c",
                   "import ctypes, hashlib, json, sys, threading\n"
                   "print(hashlib.sha256(b'x').hexdigest(), json.dumps({'a': 1}))\n"
                   "print(ctypes.CDLL(None).abs(-3))\n"
                   "t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n"
                   "sys.exit(9)"});
  check_identical(
      {"python3", "-c", "import subprocess; print(subprocess.call(['sh', '-c', 'exit 4']))"});
}

TEST_CASE("perl", "[corpus]") {
  if (!present("perl")) return;
  check_identical({"perl", "-MPOSIX", "-e", "print POSIX::floor(2.5), \"\\n\"; die 'end'"});
}

TEST_CASE("gdb", "[corpus]") {
  if (!present("gdb")) return;
  check_identical(
      {"gdb", "-nx", "-q", "-batch", "-ex", "print 6*7", "-ex", "info line main", client("hello")});
}

TEST_CASE("node or java", "[corpus]") {
  if (present("node")) {
    check_identical({"node", "-e", "console.log([3,1,2].sort().join()); process.exit(5)"});
  }
  if (present("java")) check_identical({"java", "-Xint", "-Xshare:auto", "-version"});
}

TEST_CASE("A setuid program, which ignores what is preloaded or runs with it", "[corpus]") {
  bool found = false;
  for (const char* program : {"/usr/bin/su", "/usr/bin/mount", "/usr/bin/passwd"}) {
    struct stat status {};
    if (stat(program, &status) != 0 || (status.st_mode & S_ISUID) == 0) continue;
    found = true;
    check_identical({program, "--help"});
  }
  if (!found) std::cerr << "skipped: no setuid program of su, mount, passwd is installed\n";
}

TEST_CASE("A program that forks", "[corpus]") {
  check_identical({client("forks")});
}

TEST_CASE("A program that becomes another one", "[corpus]") {
  check_identical({"env", "-i", "A=b", client("hello"), "x"});
  check_identical({"sh", "-c", "exec '" + client("hello") + "' x"});
}

TEST_CASE("A static program", "[corpus]") {
  check_identical({client("hello_static"), "x"});
}

TEST_CASE("Programs under LD_BIND_NOW", "[corpus]") {
  check_identical({client("hello")}, {{"LD_BIND_NOW", "1"}});
  check_identical({"sh", "-c", "echo bound | cat"}, {{"LD_BIND_NOW", "1"}});
}

TEST_CASE("A program under the dynamic linker's own debugging", "[corpus]") {
  // No file is looked for, nothing is opened: what the linker reports but for addresses is short.
  const Outcome outcome = run_preloaded({client("hello")}, {{"LD_DEBUG", "files"}});
  CHECK(outcome.err.find("libcontextune.so") == std::string::npos);
  CHECK(outcome.err.find("libcuda") == std::string::npos);
}
