"""Jobs of ranks that make choices together."""

import time
import unittest

import faults
import job


class Choices(job.Linked):
    """The program with its words, in place of the demo."""

    def __init__(self, program, *words):
        super().__init__()
        self.program = program
        self.words = words

    def argv(self, _steps, folder):
        return [job.BUILD / "apps" / self.program, folder / "meet", *self.words]


class ChoiceTestCase(unittest.TestCase):
    """Of one program in build/apps."""

    maxDiff = None
    program = None

    def run_job(self, num_ranks, *words, survivors=None, variables=None, peculiar=None,
                declared=True):
        start = time.monotonic()
        with job.Job(num_ranks, "body", 0, variables or {}, peculiar, Choices(self.program, *words),
                     declared) as ranks:
            outcome = faults.judge(ranks, range(num_ranks) if survivors is None else survivors, start)
            logs = [ranks.log(rank) for rank in range(num_ranks)]
            self.ran, self.asked = ([path.read_text() for path in sorted(ranks.folder.glob(f"meet.{what}.*"))]
                                    for what in ("ran", "asked"))
        self.assertEqual(outcome.wrong, [], logs)
        return logs

    def assert_agreed(self, logs):
        """No rank says that it did not agree with others."""
        for log in logs:
            self.assertEqual(job.told(log), [])
