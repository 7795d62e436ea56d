"""Threads that compile, with work that takes as long as a test says."""

import os
import threading
import time
import unittest
import unittest.mock

import contextune._compile_threads as compile_threads
from contextune._compile_threads import CompileThreads

LIMIT = 60  # seconds, of what would hang


class CompileThreadsOfSixteenProcessors(unittest.TestCase):
    def setUp(self):
        self.threads, self.begun, self.is_over = set(), threading.Semaphore(0), threading.Event()
        self.compile = CompileThreads()
        self.enterContext(unittest.mock.patch.object(os, "sched_getaffinity", lambda _: set(range(16))))
        self.addCleanup(self.join)
        self.addCleanup(self.is_over.set)

    @staticmethod
    def join():
        for thread in threading.enumerate():
            if thread.name == compile_threads._NAME:
                thread.join(LIMIT)

    def grow_after(self, seconds):
        self.enterContext(unittest.mock.patch.object(compile_threads, "_GROWING_SECONDS", seconds))

    def work(self):
        """Takes until the end of the test."""
        self.threads.add(threading.get_ident())
        self.begun.release()
        self.is_over.wait(LIMIT)

    def submit(self, count):
        for _ in range(count):
            self.compile.submit(self.work)

    def wait_for(self, count):
        for _ in range(count):
            self.assertTrue(self.begun.acquire(timeout=LIMIT))

    def test_who_waits_for_one_kernel_shares_the_interpreter_with_three_threads_at_first(self):
        self.grow_after(10 * LIMIT)
        self.submit(16)
        self.wait_for(3)
        time.sleep(20 * compile_threads._QUICK_SECONDS)  # in which more might come
        self.assertEqual(len(self.threads), 3)

    def test_more_come_while_work_lasts_up_to_one_for_each_processor(self):
        self.grow_after(0)
        self.submit(20)
        self.wait_for(16)
        time.sleep(20 * compile_threads._QUICK_SECONDS)
        self.assertEqual(len(self.threads), 16)

    def test_work_that_comes_later_is_begun_while_all_threads_take_long(self):
        self.grow_after(0)
        self.submit(3)
        self.wait_for(3)
        self.submit(1)
        self.wait_for(1)
        self.assertEqual(len(self.threads), 4)

    def test_all_is_done_by_who_asks_where_the_system_gives_no_threads(self):
        with unittest.mock.patch.object(threading.Thread, "start", side_effect=RuntimeError):
            pieces = [self.compile.submit(threading.get_ident) for _ in range(5)]
            self.assertEqual([piece.result() for piece in pieces], 5 * [threading.get_ident()])

    def test_one_thread_does_all_where_the_system_gives_no_second(self):
        start, started = threading.Thread.start, []

        def start_one(thread):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(thread)
            start(thread)

        with unittest.mock.patch.object(threading.Thread, "start", start_one):
            pieces = [self.compile.submit(threading.get_ident) for _ in range(5)]
            started[0].join(LIMIT)
        self.assertFalse(started[0].is_alive())
        self.assertEqual([piece.result() for piece in pieces], 5 * [started[0].ident])

    def test_threads_begin_again_once_the_system_gives_some(self):
        with unittest.mock.patch.object(threading.Thread, "start", side_effect=RuntimeError):
            self.compile.submit(self.work)
        self.compile.submit(self.work)
        self.wait_for(2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
