package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"caisson/sandbox"
)

// inEachImage runs a test with busybox' tools and with the GNU ones.
func inEachImage(t *testing.T, test func(t *testing.T, s *Session)) {
	for _, image := range []string{busybox, debian} {
		t.Run(image, func(t *testing.T) { test(t, create(t, provider(t), specOf(image))) })
	}
}

func upload(t *testing.T, s *Session, files ...sandbox.FileWrite) []sandbox.FileWritten {
	t.Helper()
	written, err := s.WriteFiles(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func download(t *testing.T, s *Session, read sandbox.FileRead) sandbox.FileContent {
	t.Helper()
	got, err := s.ReadFile(t.Context(), read)
	if err != nil {
		t.Fatalf("%+v: %v", read, err)
	}
	return got
}

func TestBugFS01_UploadsBelongToTheSession(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		upload(t, s, sandbox.FileWrite{Path: "/workspace/a.sh", Content: []byte("echo ran\n"), Mode: modeOf(0o755)})
		out := sh(t, s, `id -u; stat -c '%u %a' /workspace/a.sh; echo "# more" >>/workspace/a.sh; sh /workspace/a.sh`)
		if lines := strings.Fields(out); len(lines) != 4 || lines[0] != lines[1] || lines[2] != "755" || lines[3] != "ran" {
			t.Errorf("%q", out)
		}
	})
}

func TestBugFS02_FilesOnATmpfsAreSeenBothWays(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		upload(t, s, fileOf("/dev/shm/x", "up"))
		if out := sh(t, s, "cat /dev/shm/x; printf down >/dev/shm/z"); out != "up" {
			t.Errorf("%q", out)
		}
		if got := download(t, s, sandbox.FileRead{Path: "/dev/shm/z"}); string(got.Content) != "down" {
			t.Errorf("%q", got.Content)
		}
	})
}

func TestBugFS03_NothingIsWrittenOutside(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		for path, kind := range map[string]sandbox.Kind{
			"../../etc/x": sandbox.KindPathEscapes, "/workspace/../etc/x": sandbox.KindPermission, "/etc/x": sandbox.KindPermission,
		} {
			_, err := s.WriteFiles(t.Context(), []sandbox.FileWrite{fileOf("good", "good"), fileOf(path, "bad")})
			wantKind(t, err, kind)
		}
		_, err := s.ReadFile(t.Context(), sandbox.FileRead{Path: "/workspace/../etc/shadow"})
		if kind := sandbox.KindOf(err); kind != sandbox.KindPermission && kind != sandbox.KindFileNotFound {
			t.Errorf("%v", err)
		}
		for name, row := range refusedTars(t) {
			_, err := s.WriteArchive(t.Context(), "d", bytes.NewReader(row.archive))
			if sandbox.KindOf(err) != row.kind {
				t.Errorf("%s: %v", name, err)
			}
		}
		if out := sh(t, s, "ls -A /workspace; ls /etc/x 2>/dev/null; find / -xdev -perm -4000 -newer /proc/1 2>/dev/null; true"); out != "" {
			t.Errorf("%q", out)
		}
	})
}

func TestBugFS04_LargeUploadsArriveWhole(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		for _, size := range []int{0, 1, 97 << 10, 200 << 10, 20 << 20} {
			content := noise(size)
			w := sandbox.FileWrite{Path: "/workspace/new/deep/f", Content: content[:min(size, sandbox.FilePieceLimit)]}
			upload(t, s, w)
			for at := len(w.Content); at < size; at += len(w.Content) {
				w.Content = content[at:min(size, at+sandbox.FilePieceLimit)]
				w.Append, w.ExpectedSize = true, sizeOf(int64(at))
				upload(t, s, w)
			}
			if out := sh(t, s, "sha256sum </workspace/new/deep/f; rm -r /workspace/new"); !strings.HasPrefix(out, sumOf(content)) {
				t.Errorf("%d bytes: %q", size, out)
			}
		}
		start := time.Now()
		_, err := s.WriteFiles(t.Context(), []sandbox.FileWrite{{Path: "/proc/none/f", Content: noise(8 << 20)}})
		wantKind(t, err, sandbox.KindFileNotFound)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
		if out := sh(t, s, "ls -A /workspace /tmp"); strings.Contains(out, ".caisson") {
			t.Errorf("left: %q", out)
		}
	})
}

func TestBugFS05_DownloadsAreExact(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		content := noise(5 << 20)
		upload(t, s, sandbox.FileWrite{Path: "f", Content: content})
		got := download(t, s, sandbox.FileRead{Path: "f"})
		if !bytes.Equal(got.Content, content) || got.SHA256 != sumOf(content) {
			t.Errorf("%d bytes, sum %s", len(got.Content), got.SHA256)
		}
		upload(t, s, sandbox.FileWrite{Path: "g", Content: got.Content})
		sh(t, s, "cmp /workspace/f /workspace/g")
		piece := download(t, s, sandbox.FileRead{Path: "f", Offset: -(1 << 20), Limit: 1 << 20})
		if !bytes.Equal(piece.Content, content[4<<20:]) || !piece.EOF || piece.SHA256 != sumOf(content) {
			t.Errorf("%d bytes from %d, EOF %v, sum %q", len(piece.Content), piece.Offset, piece.EOF, piece.SHA256)
		}
	})
}

func TestAttackT38_OddNamesAndKindsComeOutOfASession(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		sh(t, s, `mkdir d && cd d && mkfifo fifo && ln -s /etc/shadow absolute && ln -s ../.. up && ln -s nowhere dangling && touch -- -rf 'new
line' "$(printf '\033[2J')" "$(printf '\377')" && touch setuid && chmod 4755 setuid && mkdir sub && echo x >sub/f`)
		start := time.Now()
		entries, more, err := s.ReadDir(t.Context(), "d", true, 0)
		if err != nil || more || len(entries) != 11 {
			t.Fatalf("%d entries, more %v, %v", len(entries), more, err)
		}
		names := map[string]sandbox.DirEntry{}
		for _, e := range entries {
			names[e.Path] = e
		}
		for _, name := range []string{"-rf", "new\nline", "\x1b[2J", "\xff", "sub/f"} {
			if names[name].Type != "file" {
				t.Errorf("%q: %+v", name, names[name])
			}
		}
		if names["fifo"].Type != "fifo" || names["absolute"].LinkTarget != "/etc/shadow" || time.Since(names["sub"].ModifiedAt) > time.Hour {
			t.Errorf("%+v", names)
		}
		got := download(t, s, sandbox.FileRead{Path: "d"})
		headers, _ := unpack(t, got.Content)
		if got.Skipped != 3 || len(headers) != 8 || headers["dangling"] == nil || headers["setuid"].Mode != 0o755 {
			t.Errorf("skipped %d, %v", got.Skipped, headers)
		}
		for _, path := range []string{"d/fifo", "d/up", "d/absolute", "d/dangling", "/dev/zero", "/dev/stdin"} {
			if _, err := s.ReadFile(t.Context(), sandbox.FileRead{Path: path}); err == nil {
				t.Errorf("%s is read", path)
			}
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestD19_ArchiveGoesIntoASession(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		archive := packed(t, tarFile("a/b", "content"), tarKind('2', "l", "a/b"), tarFile(strings.Repeat("n", 200), "long"), tarFile("big", string(noise(3<<20))))
		written, err := s.WriteArchive(t.Context(), "d", bytes.NewReader(archive))
		if err != nil || len(written) != 3 || written[0].Path != "/workspace/d/a/b" {
			t.Fatalf("%+v, %v", written, err)
		}
		if out := sh(t, s, "cd d; cat l nnnn*; stat -c %u a a/b | uniq; id -u; ls -A | wc -l"); strings.Join(strings.Fields(out), " ") != "contentlong1000 1000 4" {
			t.Errorf("%q", out)
		}
	})
}

// A transfer that its caller gives up ends in the session too and leaves nothing.
func TestD19_CancelledUploadLeavesNothing(t *testing.T) {
	inEachImage(t, func(t *testing.T, s *Session) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				entries, _, err := s.ReadDir(ctx, "d", false, 0)
				if err == nil && len(entries) > 0 {
					cancel()
				}
			}
		}()
		_, err := s.WriteArchive(ctx, "d", io.MultiReader(bytes.NewReader(packed(t, tarFile("a", string(noise(1<<20))))[:1<<20]), stalled{ctx}))
		if err == nil {
			t.Error("a success")
		}
		eventually(t, "the directory is gone", func() bool { return sh(t, s, "ls -A /workspace") == "" })
		eventually(t, "the script has ended", func() bool { return !strings.Contains(sh(t, s, "cat /proc/[0-9]*/cmdline"), "caisson-"+"files") })
	})
}

// stalled gives nothing until ctx ends.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, errors.New("given up")
}

// With the same race in the tests of the scripts alone it is 500 of each.
func TestAttackT41_RaceInASessionLeadsNowhere(t *testing.T) {
	s := create(t, provider(t), specOf(busybox))
	before := sh(t, s, "cat /etc/passwd /etc/hostname /etc/group | sha256sum; ls -lA /etc | sha256sum")
	race := mustStart(t, s, sandbox.ExecSpec{Timeout: 10 * time.Minute, Argv: []string{"sh", "-c", `mkdir d; while :; do
		for to in /etc /proc/1/root ../..; do mv d real && ln -s "$to" d; rm d; mv real d; done
	done 2>/dev/null`}})
	var wrote, read, refused atomic.Int64
	var work sync.WaitGroup
	for worker := range 4 {
		work.Go(func() {
			for i := range 40 {
				path := fmt.Sprintf("d/%s", []string{"passwd", "hostname", "etc/passwd", "new/f"}[(i+worker)%4])
				if _, err := s.WriteFiles(t.Context(), []sandbox.FileWrite{fileOf(path, "inside")}); err == nil {
					wrote.Add(1)
				} else {
					refused.Add(1)
				}
				got, err := s.ReadFile(t.Context(), sandbox.FileRead{Path: path})
				if err == nil {
					read.Add(1)
				}
				if err == nil && !got.Dir && string(got.Content) != "inside" {
					t.Errorf("%s: read %q", path, got.Content)
				}
			}
		})
	}
	work.Wait()
	if _, err := race.Kill(sandbox.SignalKill); err != nil {
		t.Error(err)
	}
	if wrote.Load() == 0 || read.Load() == 0 || refused.Load() == 0 {
		t.Errorf("no race: %d written, %d read, %d refused", wrote.Load(), read.Load(), refused.Load())
	}
	if after := sh(t, s, "cat /etc/passwd /etc/hostname /etc/group | sha256sum; ls -lA /etc | sha256sum"); after != before {
		t.Errorf("/etc was %q and is %q", before, after)
	}
}
