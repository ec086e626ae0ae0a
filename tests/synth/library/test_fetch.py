"""Fetching cell libraries from a real HTTP server on this machine: cut off, resumed, damaged, unreachable, at the same time."""

import gzip
import hashlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import typer
from cdu_cli import pdk as pdk_command
from cdu_synth.library import fetch, pdk
from cdu_tools import cache
from typer.testing import CliRunner


class Server(ThreadingHTTPServer):
    """Serves byte strings by path, with ranges or without, and hangs up after some bytes when told to."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.ranges = True
        self.hang_up_after = []  # bytes of the next answers, one each
        self.requests = []  # path and Range header

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.headers["Range"]
        self.server.requests.append((self.path, asked))
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        body = content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(body[: self.server.hang_up_after.pop(0)] if self.server.hang_up_after else body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def text():
    """A text that takes several reads of a connection, and does not shrink much when packed."""
    noise = "".join(f"/* {hashlib.sha512(str(number).encode()).hexdigest()} */\n" for number in range(3000))
    return f"library (ours) {{\n{noise}}}\n".encode()


@pytest.fixture
def library(server, text):
    """A published library of two files, one of them packed."""
    server.files = {"/1/a.lib.gz": gzip.compress(text), "/1/other.lib": text[::-1]}
    files = (
        pdk.Published(
            "a.lib.gz", f"{server.address}/1/a.lib.gz", len(server.files["/1/a.lib.gz"]), hashlib.sha256(text).hexdigest()
        ),
        pdk.Published("b.lib", f"{server.address}/1/other.lib", len(text), hashlib.sha256(text[::-1]).hexdigest()),
    )
    return pdk.Known("ours", "Our cells", "typical", "Apache-2.0", "https://example.org/terms", f"{server.address}/1", files)


def fetched(library, folder):
    """Fetch a library; its paths and what was said on the way."""
    said = []
    return fetch.fetch(library, folder, lambda *words: said.append(words)), said


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_files_arrive_under_their_names(server, library, text, tmp_path):
    paths, said = fetched(library, tmp_path / "new" / "pdk")
    assert [path.name for path in paths] == ["a.lib.gz", "b.lib"] == names(tmp_path / "new" / "pdk")
    assert gzip.decompress(paths[0].read_bytes()) == text
    assert paths[1].read_bytes() == text[::-1]
    for file in library.files:
        assert (file.name, file.size) in said
    arrived = [count for name, count in said if name == "b.lib"]
    assert len(arrived) > 2
    assert arrived == sorted(arrived)


def test_what_is_there_is_not_asked_for_again(server, library, tmp_path):
    paths, _ = fetched(library, tmp_path)
    asked = len(server.requests)
    assert fetched(library, tmp_path) == (paths, [])
    assert len(server.requests) == asked == 2


def test_a_file_put_there_by_hand_counts_packed_or_not(server, library, text, tmp_path):
    (tmp_path / "a.lib").write_bytes(text)
    (tmp_path / "b.lib.gz").write_bytes(gzip.compress(text[::-1], 1))
    paths, _ = fetched(library, tmp_path)
    assert [path.name for path in paths] == ["a.lib", "b.lib.gz"]
    assert not server.requests


def test_another_file_of_that_name_is_kept_and_named(server, library, tmp_path):
    mine = tmp_path / "a.lib"
    mine.write_text("library (mine) { }")
    with pytest.raises(fetch.FetchError, match=r"a\.lib is not the file of http.*move it away"):
        fetched(library, tmp_path)
    assert mine.read_text() == "library (mine) { }"
    assert not server.requests


def test_a_cut_off_connection_is_taken_up_in_the_same_call(server, library, text, tmp_path):
    server.hang_up_after = [100_000, 50_000]
    paths, said = fetched(library, tmp_path)
    assert gzip.decompress(paths[0].read_bytes()) == text
    assert server.requests[:3] == [("/1/a.lib.gz", None), ("/1/a.lib.gz", "bytes=100000-"), ("/1/a.lib.gz", "bytes=150000-")]
    arrived = [count for name, count in said if name == "a.lib.gz"]
    assert arrived == sorted(arrived)


def test_the_next_call_goes_on_where_the_last_one_ended(server, library, text, tmp_path):
    server.hang_up_after = [100_000, 0]
    with pytest.raises(fetch.FetchError, match=r"100,000 of [\d,]+ bytes are here, and fetching again goes on from there"):
        fetched(library, tmp_path)
    assert names(tmp_path) == ["a.lib.gz.partial"]
    assert pdk._in_folder(tmp_path) == []
    server.requests.clear()
    paths, _ = fetched(library, tmp_path)
    assert server.requests[0] == ("/1/a.lib.gz", "bytes=100000-")
    assert gzip.decompress(paths[0].read_bytes()) == text
    assert names(tmp_path) == ["a.lib.gz", "b.lib"]


def test_a_server_without_ranges_starts_again(server, library, text, tmp_path):
    server.ranges = False
    server.hang_up_after = [100_000]
    paths, _ = fetched(library, tmp_path)
    assert server.requests[1] == ("/1/a.lib.gz", "bytes=100000-")
    assert gzip.decompress(paths[0].read_bytes()) == text


def test_a_server_that_always_ends_at_the_same_place_ends_the_attempt(server, library, tmp_path):
    server.ranges = False
    server.hang_up_after = [100_000] * 9
    with pytest.raises(fetch.FetchError, match="100,000 of"):
        fetched(library, tmp_path)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("/1/other.lib", lambda content: content[:-1] + b"?", "a file whose text has the SHA-256"),
        ("/1/a.lib.gz", lambda content: bytes(len(content)), "a damaged file"),
        ("/1/a.lib.gz", lambda content: content[:-9] + bytes(9), "a damaged file"),
    ],
)
def test_another_content_is_refused_and_not_kept(server, library, tmp_path, path, change, message):
    content = server.files[path]
    server.files[path] = change(content)
    file = next(file for file in library.files if file.address.endswith(path))
    with pytest.raises(fetch.FetchError) as raised:
        fetched(library, tmp_path)
    assert str(raised.value).startswith(f"{file.address} delivered {message}")
    assert f"instead of {file.sha256}" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not [name for name in names(tmp_path) if name.startswith(file.name)]
    server.files[path] = content
    fetched(library, tmp_path)
    assert names(tmp_path) == ["a.lib.gz", "b.lib"]


def test_a_longer_file_is_refused(server, library, text, tmp_path):
    server.files["/1/other.lib"] += b"more"
    with pytest.raises(fetch.FetchError, match=rf"longer than the {len(text):,} bytes"):
        fetched(library, tmp_path)
    assert names(tmp_path) == ["a.lib.gz"]


def test_a_partial_file_longer_than_the_published_one_is_thrown_away(server, library, text, tmp_path):
    (tmp_path / "b.lib.partial").write_bytes(bytes(len(text) + 1))
    paths, _ = fetched(library, tmp_path)
    assert paths[1].read_bytes() == text[::-1]


def test_without_a_network_the_sentence_says_what_to_put_where(server, library, tmp_path):
    with socket.socket() as nobody:  # bound and not listening: connections to it are refused
        nobody.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{nobody.getsockname()[1]}/a.lib.gz"
        file = pdk.Published("a.lib.gz", gone, 10, "0" * 64)
        with pytest.raises(fetch.FetchError) as raised:
            fetched(pdk.Known("ours", "", "", "", "", "", (file,)), tmp_path)
    assert str(raised.value) == (
        f"cannot fetch {gone}: no connection (Connection refused); "
        f"without a connection get it on another machine and put it into {tmp_path} as a.lib.gz"
    )
    assert names(tmp_path) == []


def test_an_address_that_is_gone_says_so(server, library, tmp_path):
    server.files.clear()
    with pytest.raises(fetch.FetchError, match="the server answers 404 Not Found"):
        fetched(library, tmp_path)


def test_a_folder_that_cannot_be_written_says_so(library, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(fetch.FetchError, match=rf"cannot use the cache .*{cache.FOLDER_VARIABLE}"):
        fetched(library, tmp_path / "file" / "pdk")


def test_two_at_the_same_time_download_once(server, library, text, tmp_path):
    found = []
    together = threading.Barrier(4)

    def one():
        together.wait()
        found.append(fetched(library, tmp_path)[0])

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(paths == found[0] for paths in found)
    assert sorted(path for path, _ in server.requests) == ["/1/a.lib.gz", "/1/other.lib"]
    assert gzip.decompress(found[0][0].read_bytes()) == text


@pytest.fixture
def command(library, tmp_path, monkeypatch):
    """`cdu pdk` of a machine that knows only the library of the local server, and has no other."""
    monkeypatch.setattr(pdk, "KNOWN", {library.name: library})
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(pdk.FOLDER_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer(pretty_exceptions_enable=False)
    pdk_command.register(app)
    app.command()(lambda: None)  # with a single command Typer would leave out its name
    return lambda *arguments: CliRunner().invoke(app, ["pdk", *map(str, arguments)])


def test_list_fetch_list(command, library, tmp_path):
    before = command("list", "--json", tmp_path / "list.json")
    assert before.exit_code == 0, before.output
    assert "missing  add it with `cdu pdk fetch ours`" in before.output
    row = json.loads((tmp_path / "list.json").read_text())["libraries"][0]
    assert (row["name"], row["corner"], row["licence"], row["source"]) == ("ours", "typical", "Apache-2.0", library.source)
    assert row["here"] == []
    made = command("fetch", "ours", "--json", tmp_path / "fetch.json")
    assert made.exit_code == 0, made.output
    paths = [str(tmp_path / "cache" / "pdk" / name) for name in ("a.lib.gz", "b.lib")]
    assert json.loads((tmp_path / "fetch.json").read_text())[0]["here"] == paths
    for said in (library.licence, library.terms, library.source, *paths):
        assert said in made.output
    after = command("list", "--json", tmp_path / "list.json")
    assert json.loads((tmp_path / "list.json").read_text())["libraries"][0]["here"] == paths
    assert ", ".join(paths) in after.output
    assert [str(path) for path in pdk.find("ours").files] == paths


def test_fetch_says_when_another_folder_goes_before(command, library, text, tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    for name in ("a.lib", "b.lib"):
        (own / name).write_bytes(text)
    monkeypatch.setenv(pdk.FOLDER_VARIABLE, str(own))
    assert f"ours is taken from {own}, which goes before {tmp_path / 'cache' / 'pdk'}" in command("fetch", "ours").output
