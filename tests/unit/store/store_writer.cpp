// A process that writes to a store, for tests that end or stop it.
//   store_writer save FOLDER LEDGER ID COUNT   saves sites ID-0, ID-1, ... and notes each in LEDGER
//                                              once save() has returned true
//   store_writer stop FOLDER                   stops itself while it holds the lock of the entry;
//                                              then writes, and exits 3 if that was refused
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include <contextune/error.hpp>

#include "store/entry_lock.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

int save(const std::string& folder, const std::string& ledger, const std::string& id, int count) {
  const int notes = ::open(ledger.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  // Longer than a program would wait: sixteen that do nothing but save are many.
  FileStore store(folder,
                  [](FallbackReason, const std::string& text) { std::cerr << text << std::endl; },
                  {60, nullptr});
  bool all = notes >= 0;
  for (int i = 0; i < count; ++i) {
    const std::string name = id + "-" + std::to_string(i);
    const bool saved = store.save(identity(), {site(name)}, std::nullopt);
    all = all && saved;
    const std::string line = name + "\n";
    if (saved && ::write(notes, line.data(), line.size()) < 0) return 1;
  }
  return all ? 0 : 2;
}

int stop(const std::string& folder) {
  const EntryPlace place = place_of(StoredKind::Region, "decode", identity().environment.hardware);
  const Folder inner = Folder::create(folder).create_inner(place.folder);
  EntryLock lock(inner, place.file, std::chrono::steady_clock::now() + std::chrono::seconds(5));
  std::raise(SIGSTOP);
  try {
    lock.replace("what a writer that was stopped knew");
  } catch (const Error& error) {
    std::cerr << error.what() << std::endl;
    return 3;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "save")
    return save(words[1], words[2], words[3], std::atoi(words[4].c_str()));
  if (words.size() == 2 && words[0] == "stop") return stop(words[1]);
  return 64;
}
