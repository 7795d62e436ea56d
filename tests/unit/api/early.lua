-- What early_tests.cpp expects of a choice that was called before this could be read.
choice "pinned_early" { pin = "middle" }
