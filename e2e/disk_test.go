package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// diskMB is the limit of these tests, and slowly fills a disk up file by file past
// any limit, at a pace that leaves a small engine some room.
const (
	diskMB = 32
	slowly = "i=0; while :; do dd if=/dev/zero of=%s/fill.$i bs=1M count=4 2>/dev/null; i=$((i+1)); sleep 0.1; done"
)

// made is a session as its create shows it.
type made struct {
	SessionID string `json:"session_id"`
	Notes     []struct{ Code, Text string }
}

func (m made) noted(code string) bool {
	return slices.ContainsFunc(m.Notes, func(n struct{ Code, Text string }) bool { return n.Code == code })
}

// make makes a session, which goes with its server's test.
func (a *actor) make(spec args) made {
	a.t.Helper()
	if spec == nil {
		spec = args{}
	}
	return into[made](a.t, a.ok("session_create", spec))
}

// room is what is free on the engine's disk, in bytes and inodes, once it has
// written all down.
func (e *ownEngine) room() (bytes, inodes int64) {
	e.t.Helper()
	var fs syscall.Statfs_t
	syscall.Sync()
	if err := syscall.Statfs(filepath.Join(e.vars["CAISSON_ENGINE_DIR"], "data"), &fs); err != nil {
		e.t.Fatal(err)
	}
	return int64(fs.Bfree) * fs.Bsize, int64(fs.Ffree)
}

// roomBack waits until what was free is free again.
func (e *ownEngine) roomBack(bytes, inodes int64) {
	e.t.Helper()
	eventually(e.t, 30*time.Second, "the engine's disk has its space back", func() bool {
		b, i := e.room()
		return b >= bytes-4<<20 && i >= inodes-200
	})
}

// endedForDisk checks what a session says that was ended for its disk.
func (a *actor) endedForDisk(session string, x execOut, words string) {
	a.t.Helper()
	noted := slices.ContainsFunc(x.Notes, func(n struct{ Code, Text string }) bool {
		return n.Code == "no_space" && strings.Contains(n.Text, words)
	})
	if x.Status != "lost" || x.LostReason != "container_gone" || x.ExitCode != nil || !noted {
		a.t.Errorf("its command: %v, lost for %q", x, x.LostReason)
	}
	r := a.fails("session_lost", "exec", args{"session_id": session, "command": "true"})
	if !strings.Contains(r.text(), "no_space") || !strings.Contains(r.text(), words) {
		a.t.Errorf("the handle says %s", r.text())
	}
}

// A session that fills its disk, wherever it writes, is ended within about 10 s and
// says so, a neighbour works on, and the engine's disk has its space back.
func TestD32_AttackT17_BugEN05_ASessionThatFillsItsDiskIsEnded(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "disk-watch")
	_, a := e.serve(t, fmt.Sprintf("SANDBOX_DOCKER_DISK_MB=%d", diskMB))
	neighbour := a.make(nil)
	if !neighbour.noted("disk_watched") || neighbour.noted("disk_quota") {
		t.Errorf("notes %v", neighbour.Notes)
	}
	x := a.exec(a.make(nil).SessionID, "dd if=/dev/zero of=one bs=1M count=1024; wc -c <one")
	// A file as large as the limit is over it together with the rest, so the watch may come
	// before its size is told.
	want := fmt.Sprintf("%d\n", diskMB<<20)
	if ended := x.Status == "lost" && x.Stdout == ""; !strings.Contains(x.Stderr, "File size limit exceeded") || x.Stdout != want && !ended {
		t.Errorf("one file: %v, want %s", x, want)
	}
	bytes, inodes := e.room()
	places := strings.Fields(a.sh(neighbour.SessionID, `for d in /workspace /tmp /var/tmp /run /home / "$HOME"; do [ -w "$d" ] && echo $d; done; true`))
	if !slices.Contains(places, "/tmp") || !slices.Contains(places, "/workspace") {
		t.Fatalf("writable: %v", places)
	}
	slices.Sort(places)
	var all sync.WaitGroup
	for _, place := range slices.Compact(places) {
		s := a.make(nil).SessionID
		all.Go(func() {
			began := time.Now()
			x := a.finished(s, fmt.Sprintf(slowly, place), 120)
			took(t, began, 12*time.Second, "ending a session that fills "+place)
			t.Logf("%s: ended after %v", place, time.Since(began).Round(100*time.Millisecond))
			a.endedForDisk(s, x, fmt.Sprintf("disk limit of %d MB", diskMB))
		})
	}
	all.Wait()
	e.roomBack(bytes, inodes)
	if out := a.sh(neighbour.SessionID, "echo fine"); out != "fine\n" {
		t.Errorf("%q", out)
	}
}

// A persistent workspace outlives the session that filled it; the next session says
// that it is over the limit, can clear it up, and may not add much.
func TestD32_DUR03_AFullWorkspaceIsKeptAndCanBeCleared(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "disk-keep")
	_, a := e.serve(t, fmt.Sprintf("SANDBOX_DOCKER_DISK_MB=%d", diskMB))
	spec := args{"workspace_key": "full"}
	first := a.make(spec)
	if first.noted("disk_over_limit") {
		t.Errorf("notes %v", first.Notes)
	}
	a.endedForDisk(first.SessionID, a.finished(first.SessionID, fmt.Sprintf(slowly, "/workspace"), 120), fmt.Sprintf("disk limit of %d MB", diskMB))
	second := a.make(spec)
	if !second.noted("disk_over_limit") || !second.noted("disk_watched") {
		t.Errorf("notes %v", second.Notes)
	}
	// Longer than some measurements take.
	if out := a.sh(second.SessionID, "sleep 10; ls fill.0"); out != "fill.0\n" {
		t.Errorf("%q", out)
	}
	x := a.finished(second.SessionID, fmt.Sprintf(slowly, "/tmp"), 120)
	if x.Status != "lost" {
		t.Errorf("one that adds to a full workspace: %v", x)
	}
	third := a.make(spec)
	a.sh(third.SessionID, "rm fill.*")
	a.ok("session_destroy", args{"session_id": third.SessionID})
	fourth := a.make(spec)
	if fourth.noted("disk_over_limit") {
		t.Errorf("notes of a cleared workspace: %v", fourth.Notes)
	}
	a.ok("session_destroy", args{"session_id": fourth.SessionID})
	a.ok("workspace_delete", args{"workspace_key": "full"})
}

// All inodes of the engine are used up, and trees are deeper than any path is long:
// the engine lives, and what did it is destroyed in time. Where the disk is watched a
// tree that hides its size from the engine ends its session.
func TestAttackT18_InodesAndDeepTreesAreCleanedUp(t *testing.T) {
	t.Parallel()
	const deep = "cd %s; i=0; while [ $i -lt 4000 ] && mkdir aaaa && cd aaaa; do i=$((i+1)); done 2>/dev/null; true"
	e := privateEngine(t, "disk-inodes")
	v, a := e.serve(t)
	other := a.make(nil)
	if len(other.Notes) != 0 {
		t.Errorf("without a limit nothing is said of it: %v", other.Notes)
	}
	bytes, inodes := e.room()
	s := a.make(nil).SessionID
	if x := a.finished(s, fmt.Sprintf(deep, "/workspace")+"; "+fmt.Sprintf(deep, "/tmp"), 300); !x.exited(0) {
		t.Errorf("deep trees: %v", x)
	}
	x := a.finished(s, `mkdir /tmp/many; cd /tmp/many; i=0; while true >$i; do i=$((i+1)); done 2>&1; echo stopped at $i`, 120)
	if _, left := e.room(); !strings.Contains(x.Stdout, "stopped at") || left > 100 {
		t.Errorf("%d inodes left: %v", left, x)
	}
	if r := a.do("session_create", args{}); r.IsError && r.code() != "no_space" && r.code() != "capacity" {
		t.Errorf("a create without inodes: %s", r.text())
	}
	began := time.Now()
	a.ok("session_destroy", args{"session_id": s})
	took(t, began, 30*time.Second, "destroying it")
	e.roomBack(bytes, inodes)
	a.well(10*time.Second, other.SessionID)
	ready(t, v, 10*time.Second)

	_, watching := e.serve(t, fmt.Sprintf("SANDBOX_DOCKER_DISK_MB=%d", diskMB))
	for _, place := range []string{"/workspace", "/tmp"} {
		s := watching.make(nil).SessionID
		x := watching.finished(s, fmt.Sprintf(deep, place)+"; sleep 100", 110)
		watching.endedForDisk(s, x, "cannot be watched")
	}
}

// Where the engine has quotas, they are used: here for the root file system alone,
// so that the workspace is watched.
func TestD32_BugEN05_AnEnginesOwnQuotaIsUsed(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "disk-quota", "CAISSON_ENGINE_DISK_FS=btrfs")
	_, a := e.serve(t, fmt.Sprintf("SANDBOX_DOCKER_DISK_MB=%d", diskMB))
	s := a.make(nil)
	if len(s.Notes) != 1 || s.Notes[0].Code != "disk_watched" || !strings.Contains(s.Notes[0].Text, fmt.Sprintf("the engine caps the root file system at %d MB", diskMB)) {
		t.Errorf("notes %v", s.Notes)
	}
	x := a.exec(s.SessionID, fmt.Sprintf("cd /tmp; for i in 0 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=f.$i bs=1M count=8; done 2>&1; rm f.*; echo %d", diskMB))
	if !strings.Contains(x.Stdout, "quota exceeded") || !strings.HasSuffix(x.Stdout, fmt.Sprintf("%d\n", diskMB)) || !x.exited(0) {
		t.Errorf("past the quota: %v", x)
	}
	a.endedForDisk(s.SessionID, a.finished(s.SessionID, fmt.Sprintf(slowly, "/workspace"), 120), fmt.Sprintf("disk limit of %d MB", diskMB))
}
