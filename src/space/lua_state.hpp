#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
}

namespace contextune::space {

/// The text at a place of the stack, valid as long as it lies there; empty if it is no text.
[[nodiscard]] inline std::string_view text_at(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TSTRING) return {};
  std::size_t length = 0;
  const char* const text = lua_tolstring(lua, index, &length);
  return {text, length};
}

/// `text` as a message may hold it: blanks for control characters, no more than `longest` bytes.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest);

/// A fault of a script: where it is, and why with what to do about it.
struct ScriptFault {
  int line = 0;  ///< 0: not known
  std::string text;
  bool ran_away = false;  ///< it used up its steps or memory: calling it again would cost as much
};

/// The limits of one call into a script.
struct ScriptLimits {
  std::int64_t steps = 10'000'000;      ///< instructions, and what library functions charge
  double seconds = 0.25;                ///< of processor time, should single steps be slow
  std::size_t memory_bytes = 16 << 20;  ///< of the whole state
  std::size_t block_bytes = 1 << 20;    ///< of one string or table
};

/// A Lua interpreter whose every call is bounded in steps, time and memory. It holds no library
/// until a sandbox puts some in. Not thread-safe.
class LuaState {
 public:
  /// The chunk name that scripts must be loaded under: how positions are told from messages.
  static constexpr const char* chunk_name = "=\x01";

  /// @throws std::bad_alloc
  explicit LuaState(const ScriptLimits& limits = {});
  LuaState(const LuaState&) = delete;
  LuaState& operator=(const LuaState&) = delete;
  ~LuaState();

  /// Runs `body(lua_State*)` so that Lua errors in it become a ScriptFault. They jump out of it: it
  /// may hold nothing that needs destructing while it calls Lua. Values that it leaves on the stack
  /// are taken away afterwards. C++ exceptions of the body go on to the caller.
  /// @throws ScriptFault
  template <class Body>
  void protect(Body&& body) {
    using Function = std::remove_reference_t<Body>;
    run({[](void* function, lua_State* lua) { (*static_cast<Function*>(function))(lua); },
         std::addressof(body)});
  }

  /// The interpreter, for reading what needs no memory: outside of `protect` an error of Lua ends
  /// the process.
  [[nodiscard]] lua_State* interpreter() const noexcept { return lua_; }

  /// Counts work that is done outside of the interpreter's own instructions. May raise a Lua error:
  /// only from functions that Lua called.
  void charge(std::int64_t steps);

  /// Before a piece of a chunk is compiled, which begins in that line: compiling counts no steps.
  /// May raise a Lua error: only from the reader of lua_load.
  void check_reading(int line);

  /// Around a library function that calls the script back. Each such call takes stack of the
  /// program's thread, which may be small: too many inside of each other are a Lua error.
  void enter_callback();
  void leave_callback() noexcept { --callbacks_; }

  /// The line at which the innermost function of the script stands; 0: none does.
  [[nodiscard]] static int line(lua_State* lua) noexcept;

  /// The object of a state that Lua hands to a function.
  [[nodiscard]] static LuaState& of(lua_State* lua) noexcept;

 private:
  struct Task {
    void (*call)(void*, lua_State*);
    void* function;
  };

  void run(const Task& task);
  [[noreturn]] void exceed();
  void check_time();
  [[nodiscard]] ScriptFault take_fault(int status);
  static int trampoline(lua_State* lua);
  static int on_error(lua_State* lua);
  static void on_count(lua_State* lua, lua_Debug* where);
  static void* allocate(void* self, void* block, std::size_t old_bytes, std::size_t new_bytes);

  ScriptLimits limits_;
  lua_State* lua_ = nullptr;
  std::size_t used_bytes_ = 0;
  std::int64_t steps_left_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  double processor_deadline_ = 0.0;  ///< 0: the deadline on the clock has not passed yet
  bool bounded_ = false;             ///< inside `run`
  bool exceeded_ = false;
  int fault_line_ = 0;
  int reading_line_ = 0;  ///< not 0: a chunk is being read
  int callbacks_ = 0;
  std::exception_ptr exception_;
};

}  // namespace contextune::space
