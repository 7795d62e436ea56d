#include "space/lua_state.hpp"

#include <locale.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "space/lua_stdio.h"

namespace contextune::space {
namespace {

constexpr int instructions_per_check = 256;
constexpr std::size_t longest_message = 600;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// This thread reads, writes and orders text as in no country in particular, as long as this lives:
/// Lua asks the locale, which is the program's, and 0.5 must not become 0,5 in what a script makes.
class PlainLocale {
 public:
  PlainLocale() noexcept : before_(uselocale(plain())) {}
  ~PlainLocale() { (void)uselocale(before_); }
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  static locale_t plain() noexcept {
    static const locale_t made = newlocale(LC_ALL_MASK, "C", nullptr);
    return made;  // null, if there ever were none, leaves the thread its own
  }

  locale_t before_;
};

/// Takes "\x01:LINE: " off a message.
int take_position(std::string_view& text) {
  if (!text.starts_with("\x01:")) return 0;
  int line = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + 2, end, line);
  if (error != std::errc{} || end - after < 2 || after[0] != ':' || after[1] != ' ') return 0;
  text.remove_prefix(static_cast<std::size_t>(after + 2 - text.data()));
  return line;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  std::string result(text.substr(0, longest));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return result;
}

LuaState::LuaState(const ScriptLimits& limits) : limits_(limits) {
  [[maybe_unused]] static const bool streams_are_set = (contextune_lua_set_stdio(), true);
  lua_ = lua_newstate(&LuaState::allocate, this);
  if (lua_ == nullptr) throw std::bad_alloc();
  *static_cast<LuaState**>(lua_getextraspace(lua_)) = this;
  lua_sethook(lua_, &LuaState::on_count, LUA_MASKCOUNT, instructions_per_check);
}

LuaState::~LuaState() {
  lua_close(lua_);
}

LuaState& LuaState::of(lua_State* lua) noexcept {
  return **static_cast<LuaState**>(lua_getextraspace(lua));
}

int LuaState::line(lua_State* lua) noexcept {
  lua_Debug where;
  for (int level = 0; lua_getstack(lua, level, &where) != 0; ++level) {
    lua_getinfo(lua, "Sl", &where);
    if (where.currentline > 0 && std::strcmp(where.source, chunk_name) == 0) {
      return where.currentline;
    }
  }
  return 0;
}

void LuaState::enter_callback() {
  constexpr int most = 4;
  if (++callbacks_ > most) luaL_error(lua_, "comparisons sort within comparisons too deeply");
}

void LuaState::run(const Task& task) {
  const PlainLocale locale;
  const int top = lua_gettop(lua_);
  // Grows nothing after the first call: the stack starts with more than this.
  if (lua_checkstack(lua_, 4) == 0) throw std::bad_alloc();
  steps_left_ = limits_.steps;
  deadline_ = std::chrono::steady_clock::now() +
              std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                  std::chrono::duration<double>(limits_.seconds));
  processor_deadline_ = 0.0;
  exceeded_ = false;
  fault_line_ = 0;
  reading_line_ = 0;
  callbacks_ = 0;
  exception_ = nullptr;

  lua_pushcfunction(lua_, &LuaState::on_error);
  lua_pushcfunction(lua_, &LuaState::trampoline);
  lua_pushlightuserdata(lua_, const_cast<Task*>(&task));
  bounded_ = true;
  const int status = lua_pcall(lua_, 1, 0, top + 1);
  bounded_ = false;
  if (status == LUA_OK) {
    lua_settop(lua_, top);
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
    return;
  }
  ScriptFault fault = take_fault(status);
  lua_settop(lua_, top);
  throw fault;
}

ScriptFault LuaState::take_fault(int status) {
  if (exceeded_ && reading_line_ != 0) {
    return {reading_line_,
            "takes too long to be read up to here; write less in one expression or function", true};
  }
  if (exceeded_) {
    return {fault_line_,
            "did not end within " + std::to_string(limits_.steps) +
                " steps; look for a loop that never ends",
            true};
  }
  if (status == LUA_ERRMEM) {
    return {fault_line_,
            "asked for more memory than a space file may have (" +
                std::to_string(limits_.memory_bytes >> 20) + " MiB in all, " +
                std::to_string(limits_.block_bytes >> 20) +
                " MiB for one text or table); look for what grows without end",
            true};
  }
  if (lua_type(lua_, -1) != LUA_TSTRING) {
    return {fault_line_, std::string("raised a ") + luaL_typename(lua_, -1) +
                             " as an error; give error() a text"};
  }
  std::size_t length = 0;
  const char* const message = lua_tolstring(lua_, -1, &length);
  std::string_view text(message, length);
  const int line = take_position(text);
  return {line > 0 ? line : fault_line_,
          printable(text, longest_message) + (text.size() > longest_message ? "..." : "")};
}

int LuaState::trampoline(lua_State* lua) {
  const auto* const task = static_cast<const Task*>(lua_touserdata(lua, 1));
  lua_settop(lua, 0);
  // An exception must not unwind the frames of Lua, which is C.
  try {
    task->call(task->function, lua);
  } catch (...) {
    of(lua).exception_ = std::current_exception();
  }
  return 0;
}

int LuaState::on_error(lua_State* lua) {
  of(lua).fault_line_ = line(lua);
  return 1;
}

void LuaState::charge(std::int64_t steps) {
  steps_left_ -= steps;
  if (steps_left_ < 0) exceed();
}

void LuaState::exceed() {
  exceeded_ = true;
  lua_pushnil(lua_);
  lua_error(lua_);
  std::abort();  // lua_error does not return, but C cannot say so
}

void LuaState::check_time() {
  if (std::chrono::steady_clock::now() < deadline_) return;
  // The clock alone would blame a script for a busy machine.
  const double now = processor_seconds();
  if (processor_deadline_ == 0.0) processor_deadline_ = now + limits_.seconds / 2;
  if (now >= processor_deadline_) exceed();
}

void LuaState::check_reading(int line) {
  reading_line_ = line;
  check_time();
  reading_line_ = 0;
}

void LuaState::on_count(lua_State* lua, lua_Debug* /*where*/) {
  LuaState& state = of(lua);
  state.charge(instructions_per_check);
  state.check_time();
}

void* LuaState::allocate(void* self, void* block, std::size_t old_bytes, std::size_t new_bytes) {
  auto& state = *static_cast<LuaState*>(self);
  if (block == nullptr) old_bytes = 0;  // then it tells what kind of object is wanted
  if (new_bytes == 0) {
    std::free(block);
    state.used_bytes_ -= old_bytes;
    return nullptr;
  }
  if (new_bytes > old_bytes) {
    const std::size_t more = new_bytes - old_bytes;
    if (new_bytes > state.limits_.block_bytes ||
        more >
            state.limits_.memory_bytes - std::min(state.used_bytes_, state.limits_.memory_bytes)) {
      // Refused again while Lua cleans up after the error, no function of the script stands.
      const int here = state.bounded_ ? line(state.lua_) : 0;
      if (here > 0) state.fault_line_ = here;
      return nullptr;
    }
    // Copying costs time that no instruction shows.
    state.steps_left_ -= static_cast<std::int64_t>(new_bytes / 64);
  }
  void* const result = std::realloc(block, new_bytes);
  if (result != nullptr) state.used_bytes_ += new_bytes - old_bytes;
  return result;
}

}  // namespace contextune::space
