-- What choice_pins_tests.cpp expects of its choices.
choice "pinned_by_file" { pin = "large" }
choice "pinned_to_small" { pin = "small" }
choice "excluded_by_file" { exclude = { "large" } }
choice "pinned_to_nothing" { pin = "lage" }
choice "excludes_nothing" { exclude = { "rign" } }
