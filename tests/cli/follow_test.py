"""`contextune report --follow` serves the page of a log that grows, to its reader and nobody else."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import unittest

from demo_runs import COMMAND, SMALL_DEMO, DemoRuns
from harness import golden_log, wait_until

DEMO_SPACE = pathlib.Path(__file__).parents[2] / "tools" / "demo_program" / "demo.lua"
PATIENCE = 20.0
LATE = 30.0  # beyond every deadline but that of a whole answer


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *fields = head.decode("ascii").split("\r\n")
        self.status = int(first.split(" ")[1])
        self.fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in fields)}


class Follower:
    """A server of the command, and the address that it has printed."""

    def __init__(self, test, *arguments):
        self.process = subprocess.Popen([str(COMMAND), "report", "--follow", *map(str, arguments)], cwd=test.work,
                                        env=test.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        test.addCleanup(self.end)
        self.text = ""
        while "open the same address" not in self.text:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(self.text + self.process.stderr.read())
            self.text += line
        self.port, self.token = re.search(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/\n", self.text).groups()
        self.port = int(self.port)
        self.host = f"127.0.0.1:{self.port}"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, raw, patience=PATIENCE):
        """All that comes back for these bytes, until the server ends the connection."""
        with self.connect() as connection:
            connection.settimeout(patience)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(raw)
            return read_all(connection)

    def ask(self, path, method="GET", host=None, protocol="HTTP/1.1", **fields):
        lines = [f"{method} {path} {protocol}", f"Host: {host or self.host}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return Answer(self.send(("\r\n".join(lines) + "\r\n\r\n").encode()))

    def page(self):
        return self.ask(f"/{self.token}/")

    def data(self, **fields):
        return self.ask(f"/{self.token}/data", **fields)

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


def read_all(connection):
    raw = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            raw += piece
    return raw


def log_lines(run, rank=0, text=None):
    head = f"2026-11-20T20:33:53.120Z run={run} pid=4242 rank={rank} level=info "
    return "".join(head + line + "\n" for line in (text or golden_log()).splitlines())


class Follow(DemoRuns):
    def setUp(self):
        super().setUp()
        self.logs = self.work / ".autotune_logs"

    def write(self, text, rank=0):
        self.logs.mkdir(exist_ok=True)
        with open(self.logs / f"rank-{rank}.log", "a") as log:
            log.write(text)

    def shows(self, follower, text):
        return wait_until(lambda: text.encode() in follower.data().body)

    def test_the_page_and_its_data_are_for_the_reader_alone(self):
        self.write(log_lines("7f3a"))
        follower = Follower(self)
        page = follower.page()
        self.assertEqual((page.status, page.fields["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn(b"kernel-0", page.body)
        data = follower.data()
        self.assertEqual((data.status, data.fields["content-type"]), (200, "application/json"))
        self.assertIn(b"kernel-0", data.body)
        for answer in (page, data):
            self.assertEqual(int(answer.fields["content-length"]), len(answer.body))
            self.assertEqual(answer.fields["cache-control"], "no-store")
            self.assertEqual(answer.fields["referrer-policy"], "no-referrer")
            self.assertEqual(answer.fields["x-frame-options"], "DENY")
            self.assertEqual(answer.fields["cross-origin-resource-policy"], "same-origin")
            self.assertIn("default-src 'none'", answer.fields["content-security-policy"])
            self.assertFalse([name for name in answer.fields if name.startswith("access-control")])
        self.assertEqual(follower.ask(f"/{follower.token}/data", host=f"LocalHost:{follower.port}").status, 200)
        self.assertEqual(follower.ask(f"/{follower.token}/other").status, 404)

    def test_the_address_is_printed_once_with_what_ssh_is_told(self):
        follower = Follower(self)
        self.assertEqual(follower.text.count(follower.token), 1)
        self.assertIn(f"ssh -L {follower.port}:127.0.0.1:{follower.port} ", follower.text)
        follower.page()
        self.assertEqual(follower.end(signal.SIGINT), (0, "", ""))

    def test_without_the_token_nothing_is_said(self):
        self.write(log_lines("7f3a"))
        follower = Follower(self)
        token = follower.token
        near = token[:-1] + ("0" if token[-1] != "0" else "1")
        refused = [follower.ask(path) for path in (
            "/", "//", "/data", "/favicon.ico", f"/{near}/", f"/{near}/data", f"/{token[:-1]}/", f"/{token}0/",
            f"/{token.upper()}x/", f"/?{token}", f"/x/{token}/", f"//{token}/", f"/%{token}/", f"/data/{token}")]
        self.assertEqual({answer.status for answer in refused}, {403})
        self.assertEqual(len({answer.body for answer in refused}), 1)
        self.assertNotIn(b"kernel", refused[0].body)
        self.assertNotIn(token.encode(), refused[0].body)

    def test_every_server_has_a_token_of_its_own(self):
        self.assertNotEqual(Follower(self).token, Follower(self).token)

    def test_another_name_for_this_machine_is_refused(self):
        follower = Follower(self)
        for host in ("evil.example", f"evil.example:{follower.port}", "127.0.0.1", "localhost", "127.0.0.1:1",
                     f"127.0.0.1.evil.example:{follower.port}", f"localhost.:{follower.port}",
                     f"[::1]:{follower.port}", f"0.0.0.0:{follower.port}", f"127.0.0.1:{follower.port}@evil.example",
                     f"user@127.0.0.1:{follower.port}", f"127.0.0.1:0{follower.port}"):
            with self.subTest(host):
                answer = follower.ask(f"/{follower.token}/", host=host)
                self.assertEqual(answer.status, 403)
                self.assertIn(f"-L {follower.port}:127.0.0.1:{follower.port}".encode(), answer.body)

    def test_only_get_is_answered(self):
        follower = Follower(self)
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"):
            with self.subTest(method):
                answer = follower.ask(f"/{follower.token}/", method=method, Origin="https://evil.example")
                self.assertEqual((answer.status, answer.fields["allow"]), (405, "GET"))
                self.assertFalse([name for name in answer.fields if name.startswith("access-control")])

    def test_what_is_no_request_is_refused(self):
        follower = Follower(self)
        get, host, end = f"GET /{follower.token}/ HTTP/1.1\r\n", f"Host: {follower.host}\r\n", "\r\n"
        for raw, status in (
                (get + end, 400),  # no Host
                (get + host + host + end, 400),
                (get + host + " folded: yes\r\n" + end, 400),
                (get + host + "no colon\r\n" + end, 400),
                (get + host + ": no name\r\n" + end, 400),
                (get + host + "Space : before\r\n" + end, 400),
                (get + host + "Nul: \0\r\n" + end, 400),
                (get + host + "Bare: a\nb: c\r\n" + end, 400),
                (get + host + "Content-Length: 3\r\n" + end + "abc", 413),
                (get + host + "Content-Length: 0x0\r\n" + end, 413),
                (get + host + "Transfer-Encoding: chunked\r\n" + end + "0\r\n\r\n", 413),
                (get.replace("HTTP/1.1", "HTTP/1.0") + host + end, 505),
                (get.replace("HTTP/1.1", "HTTP/2.0") + host + end, 505),
                (get.replace("HTTP/1.1", "HTTPS") + host + end, 400),
                (get.replace(" HTTP/1.1", "") + host + end, 400),
                (get.replace("GET /", "GET http://127.0.0.1/") + host + end, 400),
                (get.replace("GET /", "GET  /") + host + end, 400),
                (get.replace("GET ", "G(T ") + host + end, 400),
                ("\r\n" + get + host + end, 400),
                ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
                (get + host + "X: " + 9000 * "a" + "\r\n" + end, 431),
                (get + host + 2000 * "X: a\r\n" + end, 431),
                (9000 * "a", 431)):
            with self.subTest(raw[:80]):
                self.assertEqual(Answer(follower.send(raw.encode("latin-1"))).status, status)
        self.assertEqual(follower.page().status, 200)

    def test_a_large_body_does_not_take_the_refusal_back(self):
        follower = Follower(self)
        raw = f"POST /{follower.token}/ HTTP/1.1\r\nHost: {follower.host}\r\nContent-Length: 500000\r\n\r\n".encode()
        self.assertEqual(Answer(follower.send(raw + 500_000 * b"x")).status, 405)

    def test_a_request_may_come_byte_by_byte(self):
        follower = Follower(self)
        with follower.connect() as connection:
            for byte in f"GET /{follower.token}/data HTTP/1.1\r\nHost: {follower.host}\r\n\r\n".encode():
                connection.sendall(bytes([byte]))
            self.assertEqual(Answer(read_all(connection)).status, 200)

    def test_who_sends_no_request_is_cut_off(self):
        follower = Follower(self)
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            silent = [pool.submit(follower.send, raw, LATE) for raw in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost:")]
            self.assertEqual([one.result() for one in silent], [b"", b"", b""])
        self.assertLess(time.monotonic() - begin, LATE)
        self.assertEqual(follower.page().status, 200)

    def test_connections_are_counted(self):
        follower = Follower(self)
        with contextlib.ExitStack() as stack:
            for _ in range(16):
                stack.enter_context(follower.connect())
            self.assertTrue(wait_until(lambda: (raw := follower.send(b"")) and Answer(raw).status == 503))
        self.assertTrue(wait_until(lambda: (raw := follower.send(
            f"GET /{follower.token}/ HTTP/1.1\r\nHost: {follower.host}\r\n\r\n".encode())) and
            Answer(raw).status == 200))

    def test_it_listens_on_the_loopback_alone(self):
        follower = Follower(self)
        listening = []
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with contextlib.suppress(FileNotFoundError), open(table) as rows:
                listening += [row.split()[1] for row in list(rows)[1:] if row.split()[3] == "0A"]
        self.assertEqual([one for one in listening if one.endswith(f":{follower.port:04X}")],
                         [f"0100007F:{follower.port:04X}"])

    def test_a_port_may_be_chosen_and_taken(self):
        port = Follower(self).port
        result = subprocess.run([str(COMMAND), "report", "--follow", "--port", str(port)], capture_output=True,
                                text=True, cwd=self.work, env=self.environment, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"cannot listen on 127.0.0.1:{port}: ", result.stderr)
        free = socket.socket()
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        self.assertEqual(Follower(self, "--port", port).port, port)

    def test_flags_that_make_no_sense_together_are_refused(self):
        for flags, why in ((("--port", "8017"), "--follow"), (("--follow", "-o", "page.html"), "--output"),
                           (("--follow", "--force"), "--force"), (("--follow", "--port", "65536"), "port"),
                           (("--follow", "--port", "-1"), "port"), (("--follow", "a", "b"), "one folder")):
            with self.subTest(flags):
                result = subprocess.run([str(COMMAND), "report", *flags], capture_output=True, text=True, cwd=self.work,
                                        env=self.environment, timeout=PATIENCE)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(why, result.stderr)

    def test_it_ends_with_what_is_under_way(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            follower = Follower(self)
            with follower.connect() as silent, follower.connect() as half:
                half.sendall(b"GET /")
                follower.page()
                begin = time.monotonic()
                self.assertEqual(follower.end(how), (0, "", ""))
                self.assertLess(time.monotonic() - begin, 5)
                self.assertEqual(read_all(silent), b"")

    def test_the_data_is_sent_again_when_something_has_changed(self):
        self.write(log_lines("7f3a"))
        follower = Follower(self)
        first = follower.data()
        version = first.fields["etag"]
        same = follower.data(If_None_Match=version)
        self.assertEqual((same.status, same.body, same.fields["etag"]), (304, b"", version))
        self.write(log_lines("7f3a", text="event=fault text=something_new\n"))
        self.assertTrue(self.shows(follower, "something_new"))
        self.assertEqual(follower.data(If_None_Match=version).status, 200)

    def test_a_folder_that_is_not_there_yet_is_waited_for(self):
        follower = Follower(self, self.logs)
        self.assertEqual((follower.page().status, follower.data().status), (200, 200))
        self.write(log_lines("7f3a"))
        self.assertTrue(self.shows(follower, "kernel-1"))
        self.write(log_lines("7f3a", rank=1, text="event=fault text=of_rank_one\n"), rank=1)
        self.assertTrue(self.shows(follower, "of_rank_one"))

    def test_half_a_line_is_not_taken_for_one(self):
        follower = Follower(self)
        line = log_lines("7f3a", text="event=fault text=in_two_pieces\n")
        self.write(log_lines("7f3a") + line[:-10])
        self.assertTrue(self.shows(follower, "kernel-0"))
        self.assertNotIn(b"in_two", follower.data().body)
        self.write(line[-10:])
        self.assertTrue(self.shows(follower, "in_two_pieces"))

    def test_logs_that_are_replaced_cut_or_gone_are_read_anew(self):
        follower = Follower(self)
        fault = "event=fault text=fault_{}\n".format
        self.write(log_lines("7f3a", text=golden_log() + fault("a")))
        self.write(log_lines("7f3a", rank=1, text=fault("of_one")), rank=1)
        self.assertTrue(self.shows(follower, "fault_of_one"))
        path = self.logs / "rank-0.log"

        def goes(text):
            return wait_until(lambda: text.encode() not in follower.data().body)

        other = self.work / "other"
        other.write_text(log_lines("7f3a", text=golden_log() + golden_log() + fault("b")))
        os.replace(other, path)  # larger than what it replaces
        self.assertTrue(self.shows(follower, "fault_b") and goes("fault_a"))
        path.write_text(log_lines("7f3a", text=fault("c")))  # cut and written anew
        self.assertTrue(self.shows(follower, "fault_c") and goes("fault_b"))
        path.write_text(log_lines("8e4b", text=golden_log() + fault("d")))  # the same, and larger than before
        self.assertTrue(self.shows(follower, "fault_d") and goes("fault_c"))
        (self.logs / "rank-1.log").unlink()
        self.assertTrue(goes("fault_of_one"))
        path.unlink()
        os.mkfifo(path)  # nobody will ever write to it
        self.assertTrue(goes("fault_d"))
        self.assertEqual(follower.page().status, 200)
        path.unlink()
        self.logs.rmdir()
        self.assertEqual(follower.data().status, 200)

    def test_a_program_is_watched_while_it_runs(self):
        follower = Follower(self)
        program = subprocess.Popen(
            [str(COMMAND), "run", "--region", "nvtx:decode", "--mode", "replay", "--space", str(DEMO_SPACE),
             "--report", "report.txt", "--", *map(str, SMALL_DEMO), "--steps", "3000"], cwd=self.work, env=self.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        versions = set()
        while program.poll() is None:
            versions.add(follower.data().fields["etag"])
            time.sleep(0.05)
        self.assertEqual(program.returncode, 0)
        self.assertGreater(len(versions), 1)
        self.assertTrue(self.shows(follower, "project"))
        self.assertEqual(follower.end(), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
