"""The harness finds what is wrong: writers that are wrong in one way each are caught, a right one is not."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.replay import uncounted, unsynced
from tests.faults.scenarios import SCENARIOS, Scenario, command_of
from tests.faults.shim import Call, Fault, Mode
from tests.faults.sweep import Bench, Count, advised, faults_for, is_other_cache, sample, sweep
from tests.faults.trees import alike, differences, exact

_FILE, _FOLDER = "out/result.txt", "out/result"


def _scenario(writer: str, output: str = _FILE) -> Scenario:
    return Scenario(writer, (), outputs=(output,), call=f"tests.faults.writers:{writer}")


def _found(bench: Bench, scenario: Scenario, *modes: Mode) -> Count:
    """A sweep over every call, by the modes that are named or by all."""
    faults = faults_for(bench.reference(scenario).calls)
    return sweep(bench, scenario, [fault for fault in faults if fault.mode in (modes or Mode)])


def test_faults_a_right_writer_passes_every_fault(bench):
    count = _found(bench, _scenario("right"))
    assert count.calls >= 4
    assert count.kills >= count.calls
    assert count.failures >= count.calls
    assert not count.findings, "\n".join(map(str, count.findings))
    assert not count.unsynced


@pytest.mark.parametrize(
    ("writer", "problem", "mode"),
    [
        ("in_place", "neither old nor new", Mode.KILL_SHORT),
        ("never_swept", "left over: out/.", Mode.KILL),
        ("silent", "ended with 0", Mode.FAIL_ON),
        ("uncaught", "a traceback: OSError", Mode.FAIL_ONCE),
        ("careless", "inputs changed", Mode.KILL),
    ],
)
def test_faults_a_wrong_writer_is_caught(bench, writer, problem, mode):
    count = _found(bench, _scenario(writer), mode)
    found = [line for finding in count.findings for line in finding.problems]
    assert any(problem in line for line in found), found


def test_faults_losing_the_old_folder_is_caught(bench):
    """The old folder is gone and the new one not yet there: only a world that has an old one shows it."""
    scenario = _scenario("remove_first", _FOLDER)
    fresh = _found(bench, scenario, Mode.KILL)
    assert not fresh.findings
    old = Scenario("over old", (), "old result", outputs=(_FOLDER,), call=scenario.call)
    count = _found(bench, old, Mode.KILL)
    [lost] = [finding for finding in count.findings if finding.call.kind == "rename"]
    assert lost.problems == ("out/result is neither old nor new: missing: out/result/a.txt",)


def test_faults_files_written_past_the_shim_are_noticed(bench):
    with pytest.raises(
        RuntimeError, match=r"calls that the shim does not see: out/result\.txt was written to"
    ):
        bench.reference(_scenario("by_mapping"))


def test_faults_what_safetensors_renames_by_a_bare_call_is_counted(bench):
    """Its rename passes libc by; without the trap the moment in which weights take their name is left out."""
    calls = bench.reference(
        Scenario("weights", (), outputs=(_FILE,), call="tests.faults.writers:weights")
    ).calls
    assert [call.kind for call in calls][-1] == "rename"
    assert calls[-1].to == "out/weights.safetensors"


def test_faults_same_number_same_call_in_every_run(bench):
    scenario = _scenario("right")
    first = bench.reference(scenario).calls
    bench.lay_out("plain")
    again = bench.run((), scenario=scenario).calls
    assert again == first


def test_faults_a_full_disk_stays_full_and_still_removes(bench):
    scenario = _scenario("right")
    write = next(call for call in bench.reference(scenario).calls if call.kind == "write")
    bench.lay_out("plain")
    ran = bench.run((), Fault(write.n, Mode.FAIL_ON, errno.ENOSPC), scenario=scenario)
    assert ran.status == 1
    assert "No space left on device" in ran.said
    assert not list((bench.world / "out").iterdir())


def test_faults_a_child_that_hangs_is_ended_and_told(bench):
    bench.lay_out("plain")
    ran = bench._server.run(bench.world, [], call="tests.faults.writers:hang", limit=0.5)
    assert ran.status is None


def test_faults_not_armed_the_shim_changes_nothing(bench, tmp_path):
    code = "import os; f = open('a', 'w'); f.write('x' * 9999); f.close(); os.rename('a', 'c')"
    code += "; print(os.stat('c').st_size)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"LD_PRELOAD": str(bench.world.parent / "shim.so")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("9999\n", "")


def test_faults_every_call_gets_a_kill_and_a_failure():
    calls = [Call(1, "open", "a"), Call(2, "write", "a", size=9), Call(3, "unlink", "a")]
    found = faults_for(calls)
    for call in calls:
        here = [fault for fault in found if fault.n == call.n]
        assert any(fault.kills for fault in here)
        assert any(not fault.kills for fault in here)
    assert Fault(2, Mode.KILL_SHORT) in found
    assert Fault(3, Mode.FAIL_ON, errno.ENOSPC) not in found


def test_faults_a_sample_is_the_same_for_a_seed_and_of_both_kinds():
    calls = [Call(n, "write", "a", size=9) for n in range(1, 50)]
    chosen = sample(calls, 0.05, 3, "seed")
    assert chosen == sample(calls, 0.05, 3, "seed")
    assert chosen != sample(calls, 0.05, 3, "other")
    assert len(chosen) == round(0.05 * len(faults_for(calls)))
    assert {fault.kills for fault in chosen} == {True, False}
    assert len(sample(calls[:1], 0.05, 3, "seed")) == 3


def test_faults_a_sample_tries_what_is_rare_before_anything_comes_twice():
    calls = [Call(n, "write", "a", size=9) for n in range(1, 100)] + [Call(100, "exchange", "a", "b")]
    chosen = sample(calls, 0.02, 2, "seed")
    assert len(chosen) == 10
    assert {fault.mode for fault in chosen if fault.n == 100} == {Mode.KILL, Mode.FAIL_ONCE, Mode.FAIL_ON}
    of_writes = Counter((fault.mode, fault.error) for fault in chosen if fault.n < 100 and not fault.kills)
    assert max(of_writes.values()) == 1


def test_faults_going_on_follows_the_message():
    command = ["train", "x.toml", "--output", "m"]
    unfinished = (
        "error: m.run holds an unfinished run. Continue it with --resume, or start over with --overwrite."
    )
    assert advised(command, unfinished) == [*command, "--resume"]
    assert advised([*command, "--resume"], "start over with --overwrite") == [*command, "--overwrite"]
    assert advised([*command, "--resume"], "there is no run to resume. Leave --resume out.") == command
    assert advised(command, "error: the disk is full") is None
    assert advised(["audit", "a", "--against", "b"], "--resume") is None


def test_faults_states_differ_by_content_and_not_by_date_or_random_name(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, seconds, token in ((first, 1, "0badcafe"), (second, 2, "deadbeef")):
        folder.mkdir()
        own = f'"sha256": "{token}"'  # a document that hashes itself hashes its seconds, too
        (folder / "done.json").write_text(f'{{"seconds": {seconds}, "best": 3, {own}}}')
        (folder / f".x.csv.{token}.partial").write_text("half")
    assert not differences(alike(first), alike(second))
    assert len(differences(exact(first), exact(second))) == 3
    (second / "done.json").write_text('{"seconds": 1, "best": 4}')
    assert differences(alike(first), alike(second)) == ["different: done.json"]
    for folder, token in ((first, "0badcafe"), (second, "deadbeef")):
        (folder / "done.json").write_text(f'{{"best": 3, "sha256": "{token}"}}')
    assert differences(alike(first), alike(second)) == ["different: done.json"]


def test_faults_a_cache_may_keep_less_and_nothing_half_written():
    assert is_other_cache("missing: cache/identities/a.json")
    assert is_other_cache("left over: cache/print/b.safetensors")
    assert not is_other_cache("left over: cache/print/.likewise-* [folder]")
    assert not is_other_cache("missing: out/model/README.md")


def test_faults_a_name_taken_before_the_sync_is_seen():
    calls = [
        Call(1, "write", "p/a"),
        Call(2, "write", "p/b"),
        Call(3, "fsync", "p/a"),
        Call(4, "rename", "p", "m"),
    ]
    assert unsynced(calls) == ["m/b"]


def test_faults_replayed_calls_account_for_every_file():
    calls = [Call(1, "open", "p"), Call(2, "write", "p", size=5), Call(3, "exchange", "p", "m")]
    before = {"m": "old"}
    assert not uncounted(calls, before, {"m": 5, "p": 100})
    assert uncounted(calls, before, {"m": 6, "q": 1}) == ["q was made", "m was written to"]


def test_faults_scenarios_have_names_of_their_own_and_run_in_their_world():
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    for scenario in SCENARIOS:
        assert command_of(scenario)[: len(scenario.arguments)] == list(scenario.arguments)
        assert scenario.outputs or scenario.each or scenario.loose
        assert not any(Path(word).is_absolute() for word in scenario.arguments)


def test_faults_where_nothing_can_be_exchanged_the_writer_is_told_so(bench):
    scenario = Scenario("no exchange", (), "old result", exchange=False, call="tests.faults.writers:exchange")
    bench.lay_out("old result")
    assert bench.run((), scenario=scenario).status == errno.EINVAL
    assert bench.run((), scenario=Scenario("exchange", (), call=scenario.call)).status == 0
