# Takes the example out of the README of simcuda, so that what it shows is what is tested.
# Usage: cmake -DREADME=... -DLANGUAGE=cpp -DOUTPUT=... -P extract_example.cmake
file(READ ${README} text)
string(FIND "${text}" "\n```${LANGUAGE}\n" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "${README} has no ```${LANGUAGE} block")
endif()
string(LENGTH "\n```${LANGUAGE}\n" skip)
math(EXPR begin "${begin} + ${skip}")
string(SUBSTRING "${text}" ${begin} -1 text)
string(FIND "${text}" "\n```" end)
math(EXPR end "${end} + 1")
string(SUBSTRING "${text}" 0 ${end} text)
file(WRITE ${OUTPUT} "${text}")
