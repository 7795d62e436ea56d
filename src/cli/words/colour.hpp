#pragma once

#include <string>
#include <string_view>

/// The only place of escape sequences for colours.
namespace contextune::cli {

/// When a text has colours, as --color says.
enum class ColourUse { Auto, Always, Never };

/// What a text is there for.
enum class Tone {
  Good,     ///< something was won, or works
  Bad,      ///< something was lost, or does not work
  Warning,  ///< something may not be as one thinks
  Strong,   ///< the one among several
  Faint     ///< the others
};

/// Whether texts for this descriptor have colours. Auto: on a terminal that is not dumb. NO_COLOR
/// keeps them off, CLICOLOR_FORCE puts them on anywhere, CLICOLOR=0 keeps them off without it.
[[nodiscard]] bool has_colours(ColourUse use, int descriptor);

/// From now on, in_tone() colours. The command writes its text to one place, so this is one switch
/// for all of it; it is off at the start.
void switch_colours(bool on) noexcept;

/// `text`, coloured where that is switched on. The text has no colours yet.
[[nodiscard]] std::string in_tone(Tone tone, std::string_view text);

/// The number of bytes of a sequence of in_tone() at the beginning of the text; 0: there is none.
[[nodiscard]] std::size_t size_of_escape(std::string_view text) noexcept;

}  // namespace contextune::cli
