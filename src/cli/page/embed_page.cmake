# Puts the page's styles and scripts into page.html, and that into a source.
# Usage: cmake -DFOLDER=src/cli/page -DSCRIPTS=a.js;b.js -DOUTPUT=page_template.cpp -P embed_page.cmake
# A browser runs no script in the page but this one, which its policy names by its hash.
function(read_file name variable)
  file(READ ${FOLDER}/${name} text)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# The SHA-256 of a text in base64: three hexadecimal digits are two characters.
function(hash_of text variable)
  string(SHA256 hex "${text}")
  string(APPEND hex "00")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(hash "")
  foreach(at RANGE 0 63 3)
    string(SUBSTRING ${hex} ${at} 3 digits)
    math(EXPR high "0x${digits} >> 6")
    math(EXPR low "0x${digits} & 63")
    string(SUBSTRING ${alphabet} ${high} 1 first)
    string(SUBSTRING ${alphabet} ${low} 1 second)
    string(APPEND hash "${first}${second}")
  endforeach()
  string(SUBSTRING ${hash} 0 43 hash)
  set(${variable} "sha256-${hash}=" PARENT_SCOPE)
endfunction()

read_file(page.html page)
read_file(page.css style)
set(script "\"use strict\";\n(() => {\n")
foreach(name IN LISTS SCRIPTS)
  read_file(${name} text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")
hash_of("${style}" style_hash)
hash_of("${script}" script_hash)
string(REPLACE "CONTEXTUNE_STYLE_HASH" "${style_hash}" page "${page}")
string(REPLACE "CONTEXTUNE_SCRIPT_HASH" "${script_hash}" page "${page}")
string(REPLACE "CONTEXTUNE_STYLE" "${style}" page "${page}")
string(REPLACE "CONTEXTUNE_SCRIPT" "${script}" page "${page}")

# A compiler takes literals of 64 KiB for sure, and joins those that follow each other.
set(literals "")
string(LENGTH "${page}" size)
set(at 0)
while(at LESS size)
  string(SUBSTRING "${page}" ${at} 8000 piece)
  string(APPEND literals "R\"page(${piece})page\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUTPUT} "#include \"cli/page/page_template.hpp\"

namespace contextune::cli {

std::string_view page_template() {
  static constexpr char text[] =
${literals};
  return {text, sizeof(text) - 1};
}

}  // namespace contextune::cli
")
