"""The example of the README does what the README says of it."""

import sys
import unittest

from simulated import clear_logs, field, lines

clear_logs()
import example  # noqa: E402


class Example(unittest.TestCase):
    def test_all_that_a_function_calls_is_tuned_in_it_and_for_other_keys_by_itself(self):
        x = example.gpu.tensor(1000)
        self.assertIs(example.decode(x), x)
        self.assertEqual(set(x.read()), {3.0})
        self.assertTrue(lines("event=summary", "region=example.decode"))
        winners = {field(line, "site"): line for line in lines("event=winner", "region=example.decode")}
        self.assertEqual(set(winners), {"example.add", "fill"})
        self.assertEqual(field(winners["example.add"], "block"), "128")
        self.assertEqual(field(winners["fill"], "implementation"), "blocked")

        other = example.gpu.tensor(3000)
        example.add(other, 4.0)
        self.assertEqual(set(other.read()), {4.0})
        self.assertTrue(lines("event=winner", "site=example.add", "3000", "block=128"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
