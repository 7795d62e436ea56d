"""Collectives in shapes that are hard to tune: each rank prints what it prints without contextune, no
rank hangs, and the logs say what was tuned, or why it was not."""

import secrets
import unittest

import job
from shapes import Shape, ShapeTest

USERS_TUNER = {"NCCL_TUNER_PLUGIN": str(job.BUILD / "tests" / "simnccl" / "libsimnccl_test_tuner_v5.so"),
               "TEST_TUNER_QUIET": "1"}


class CollectiveShapes(ShapeTest):
    def test_communicators_of_overlapping_ranks(self):
        logs = self.check("overlapping", 4)
        self.assert_leased(logs, "ranks=2")
        self.assert_leased(logs, "ranks=4")

    def test_a_communicator_of_more_ranks_than_were_declared(self):
        # Two jobs of two ranks: the second half of the program's ranks meets elsewhere.
        first = {"CONTEXTUNE_WORLD_SIZE": "2"}
        second = first | {"CONTEXTUNE_ADDRESS": "unix:contextune-test-" + secrets.token_hex(8)}
        peculiar = {rank: job.Peculiar(variables=(first if rank < 2 else second) |
                                       {"CONTEXTUNE_RANK": str(rank % 2), "CONTEXTUNE_LOG_DIR": f"logs-{rank}"})
                    for rank in range(4)}
        logs = {}
        variables = {"CONTEXTUNE_REGION": "nvtx:step"}
        with job.Job(4, "live", 1500, variables, peculiar, Shape("halves")) as ranks:
            self.assertEqual(ranks.unfinished(range(4)), [])
            for rank in range(4):
                self.assertEqual(ranks.faults_of(rank), [])
                file = ranks.folder / f"logs-{rank}" / f"rank-{rank % 2}.log"
                logs[rank] = file.read_text()
        for half in ([logs[0], logs[1]], [logs[2], logs[3]]):
            self.assertEqual(job.contradictions(half), [])
            self.assert_leased(half, "ranks=2")
            self.assert_said(half, "no_rendezvous", "its 4 ranks are more than the 2")
            for log in half:
                self.assertEqual([line for line in job.lines(log, "trial") if "ranks=4" in line], [])
                self.assertEqual(len(job.told(log)), 1, log)

    def assert_same_winners(self, logs):
        for log in logs:
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertNotEqual(job.winners(log), [], log)

    def test_a_region_that_only_some_ranks_enter(self):
        for declared in (True, False):
            logs = self.check("some_enter", 4, 6000, declared=declared)
            self.assert_leased(logs[:2])
            self.assert_same_winners(logs[:2])
            self.assert_said(logs[2:], "region_never_entered")

    def test_a_communicator_some_of_whose_ranks_stay_out_of_the_region(self):
        logs = self.check("some_stay_out", 4, 3000, CONTEXTUNE_PRESYNC_TIMEOUT="0.5")
        self.assert_leased(logs[:2], "ranks=2")
        self.assert_same_winners(logs[:2])
        self.assert_said(logs[:2], "ranks_differ", "2 of the 4 ranks of their communicator")
        for log in logs[:2]:
            self.assertEqual([line for line in job.lines(log, "trial")
                              if "ranks=4" in line and job.field(line, "config") != "0"], [])

    def test_pairs_of_ranks_that_begin_at_different_times(self):
        for declared in (True, False):
            logs = self.check("stages", 4, 4000, declared=declared)
            self.assert_leased(logs)
            self.assert_same_winners(logs[:2])
            self.assert_same_winners(logs[2:])

    def test_ranks_with_different_collectives_in_one_region(self):
        logs = self.check("different_sites", 4)
        self.assert_leased(logs)
        for pair, own, others in ((logs[:2], "-512 ", "-64 "), (logs[2:], "-64 ", "-512 ")):
            self.assert_same_winners(pair)
            self.assert_leased(pair, own)
            for log in pair:
                self.assertNotIn(others, log)

    def test_steps_that_ranks_mark_differently(self):
        self.assert_said(self.check("some_mark", steps=3000), "ranks_differ", "will be at number")

    def test_a_group_of_one(self):
        self.assert_leased(self.check("group_of_one", steps=4000))

    def test_a_version_of_nccl_that_has_no_tuner_to_ask(self):
        logs = self.check("group_of_one", SIMNCCL_VERSION="2.21.5")
        self.assert_said(logs, "collective_fixed", "NCCL 2.21.5 is older than 2.22")
        for log in logs:
            self.assertEqual(len(job.lines(log, "fallback")), 1, log)

    def test_versions_of_nccl_that_do_not_say_which_communicator_it_is(self):
        for version in ("2.22.3", "2.27.7"):
            self.assert_leased(self.check("group_of_one", steps=4000, SIMNCCL_VERSION=version))
            self.assert_said(self.check("made_later", steps=600, SIMNCCL_VERSION=version), "collective_fixed",
                             "does not say which communicator")

    def test_groups(self):
        logs = self.check("groups")
        self.assert_leased(logs, "type=u32 op=sum bytes=8193-16384")
        self.assert_said(logs, "collective_fixed", "of several datatypes or operators")

    def test_collectives_of_several_kinds_in_a_group_are_chosen_on_the_time_of_the_region(self):
        logs = self.check("several_in_a_group", steps=3000, CONTEXTUNE_REFINE="true", CONTEXTUNE_CONFIRM="true",
                          SIMNCCL_FAULTS="slow:RING/LL:factor=30")
        self.assert_same_winners(logs)
        for log in logs:
            self.assertNotIn("reason=no_samples", log)
            self.assertEqual({job.field(line, "site"): job.field(line, "reason") for line in job.winners(log)},
                             {"all_reduce": "region", "all_gather": "region"}, log)
            for line in job.winners(log):
                self.assertNotEqual(job.field(line, "config"), "0", log)

    def test_a_group_after_a_collective_of_another_kind(self):
        logs = self.check("before_groups")
        self.assert_leased(logs, "grouped=3")
        for log in logs:
            self.assertEqual(job.sentences(log, "collective_fixed"), [])

    def test_a_long_group_of_one_kind(self):
        logs = self.check("long_group")
        self.assert_leased(logs, "grouped=70")
        self.assert_leased(logs, "type=u32 op=sum bytes=2049-4096 ")
        self.assert_same_winners(logs)

    def test_a_group_of_more_than_are_told_apart(self):
        self.assert_said(self.check("large_group", steps=300), "collective_fixed",
                         "of several datatypes or operators")

    def test_a_group_of_more_than_are_told_apart_on_one_rank(self):
        logs = self.check("large_group_on_one", steps=1500)
        self.assert_said(logs, "ranks_differ", "of them")
        for log in logs:
            self.assertEqual([line for line in job.lines(log, "trial") if "ranks=2" in line and
                              job.field(line, "config") != "0"], [], log)

    def test_collectives_where_no_region_is_marked_keep_their_default_and_it_is_said_once(self):
        for log in self.check("group_of_one", steps=200, regions="process"):
            self.assertEqual(len(job.sentences(log, "unmarked_collectives")), 1, log)
            self.assertEqual(job.lines(log, "sync"), [])

    def test_the_same_collective_outside_of_the_region(self):
        self.assert_said(self.check("outside"), "ranks_differ", "the same number of them in every entry")

    def test_another_size_in_every_entry(self):
        self.check("sizes")

    def test_sizes_of_one_bucket_for_which_nccl_chooses_differently(self):
        logs = self.check("own_choices", 4, steps=50,
                          CONTEXTUNE_SPACE=str(job.HERE / "one_bucket.lua"))
        for log in logs:
            tried = [line for line in job.lines(log, "trial") if job.field(line, "config") != "0"]
            self.assertTrue(tried)
            # A tree for the smaller one; in the larger one the switch compares, and goes on to.
            self.assertEqual({job.field(line, "status") for line in tried}, {"missing"}, log)

    def test_what_a_plugin_of_the_users_chooses_is_the_default_that_has_to_be_kept_exactly(self):
        # Numbers are compared, which the switch may do otherwise than the SMs: in what NCCL chooses by
        # itself it does so for the larger size only.
        for log in self.check("own_choices", 4, steps=30, TEST_TUNER="4 2 0", **USERS_TUNER):
            self.assertEqual({job.field(line, "default") for line in job.lines(log, "site")}, {"NVLS Simple"})
            self.assertEqual([line for line in job.lines(log, "trial") if job.field(line, "config") != "0"], [])
        self.assertEqual({line.split()[0] for what in ("256", "1048576")
                          for line in self.last_done(f"AllReduce {what} ranks=4")}, {"NVLS/SIMPLE"})
        logs = self.check("own_choices", 4, steps=50, TEST_TUNER="1 2 0", **USERS_TUNER)
        for log in logs:
            self.assertEqual({job.field(line, "default") for line in job.lines(log, "site")}, {"Ring Simple"})
        for size in ("bytes=129-256", "bytes=524289-1048576"):
            self.assert_leased(logs, size)

    def test_a_plugin_of_the_users_is_asked_about_more_communicators_than_are_tuned(self):
        logs = self.check("many", steps=3, TEST_TUNER="1 2 0", **USERS_TUNER)
        self.assert_said(logs, "collective_fixed", "more than 1024 communicators at a time")
        self.assertEqual({line.split()[0] for line in self.last_done("AllReduce 4096 ranks=2")}, {"RING/SIMPLE"})

    def test_nccl_that_its_user_has_told_how_is_left_alone_and_that_is_said(self):
        for setting in ({"NCCL_ALGO": "Ring"}, {"NCCL_PROTO": "Simple"}, {"NCCL_CTA_POLICY": "1"}):
            with self.subTest(**setting):
                logs = self.check("group_of_one", steps=200, **setting)
                self.assert_said(logs, "collective_fixed", *setting)

    def test_a_size_that_no_step_has_is_done_as_the_nearest_one(self):
        few = {"CONTEXTUNE_SPACE": str(job.HERE / "only_ring.lua"), "SIMNCCL_FAULTS": "slow:TREE;slow:NVLS"}
        self.check("later_sizes", 4, steps=100, **few)
        self.assertEqual(len(self.done), 4)
        tuned = set(self.last_done("AllReduce 524288 ranks=4"))
        self.assertEqual(len(tuned), 1)
        self.assertIn("RING/LL128", tuned.pop())
        for near in (262144, 1048576):
            self.assertEqual({line.split()[0] for line in self.last_done(f"AllReduce {near} ranks=4")},
                             {"RING/LL128"})
        # Too far away to say anything about it.
        self.assertEqual({line.split()[0] for line in self.last_done("AllReduce 8192 ranks=4")},
                         {"TREE/LL"})
        self.check("later_sizes", 4, steps=100, CONTEXTUNE_NEAREST_SIZE="off", **few)
        self.assertEqual({line.split()[0] for line in self.last_done("AllReduce 1048576 ranks=4")},
                         {"NVLS/SIMPLE"})

    def test_exchanges_between_all_ranks_are_named_and_timed(self):
        logs = self.check("exchanges", 3)
        self.assert_leased(logs)
        self.assert_said(logs, "collective_fixed", "asks no tuner")
        for log in logs:
            keys = {job.field(line, "key") for line in job.lines(log, "site")
                    if job.field(line, "site") == "all_to_all"}
            self.assertEqual(keys, {"bytes=257-512 ranks=3 nodes=1", "bytes=513-1024 ranks=3 nodes=1"})
            winners = [line for line in job.lines(log, "winner") if job.field(line, "key") in keys]
            self.assertEqual(len(winners), 2)
            for line in winners:
                self.assertGreater(float(job.field(line, "time_us")), 0)
        # Two ranks have messages as well that are no exchange of all.
        self.assert_said(logs[:2], "collective_fixed", "is not tuned: NCCL asks no tuner for messages")
        self.assertNotIn("asks no tuner for messages", logs[2])

    def test_one_collective_in_two_regions(self):
        logs = self.check("two_regions", regions="nvtx:step;nvtx:other")
        self.assert_leased(logs)
        self.assert_said(logs, "collective_fixed", "another region")

    def test_a_host_that_is_ahead_of_its_device(self):
        self.assert_leased(self.check("ahead", steps=3000))

    def test_collectives_in_graphs(self):
        self.assert_said(self.check("captured"), "capture")

    def test_communicators_that_end_and_begin_anew(self):
        self.assert_leased(self.check("anew", steps=4000))

    def test_communicators_that_last_one_step_each(self):
        for log in self.check("one_for_each_step", steps=400):
            self.assertLess(len(job.lines(log, "summary")), 6, log)

    def test_a_communicator_that_does_not_block(self):
        logs = self.check("without_blocking")
        self.assert_leased(logs, "type=u32 op=sum")
        self.assert_said(logs, "collective_fixed", "does not block")

    def test_a_communicator_that_is_made_after_the_winners(self):
        logs = self.check("made_later", steps=4000, CONTEXTUNE_SPACE=str(job.HERE / "only_ring.lua"),
                          SIMNCCL_FAULTS="slow:RING/LL")
        self.assert_leased(logs)
        before = set(self.last_done("AllReduce 4096 ranks=2"))
        self.assertEqual({done.split()[0] for done in before}, {"RING/LL128"})
        self.assertEqual(set(self.last_done("AllReduce 4092 ranks=2")), before)

    def test_what_connects_is_no_sample(self):
        variables = {"CONTEXTUNE_N_WARMUP": "0", "CONTEXTUNE_N_REPEAT": "1"}
        # Ranks that get little of a busy machine are far on when they have agreed.
        for log in self.check("group_of_one", steps=15000, **variables):
            for config in ("Tree protocol=LL", "Tree protocol=Simple"):
                first = [line for line in job.lines(log, "trial") if config in line][0]
                self.assertEqual(job.field(first, "status"), "missing", log)

    def test_two_threads_with_communicators_of_their_own(self):
        self.check("threads")

    def test_one_process_with_two_devices(self):
        logs = self.check("devices", num_ranks=1)
        self.assert_leased(logs, "ranks=2")
        self.assertEqual(job.told(logs[0]), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
