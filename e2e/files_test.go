package e2e_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// piece is the structured result of download.
type piece struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Offset   int64  `json:"offset"`
	Bytes    int64  `json:"bytes"`
	Encoding string `json:"encoding"`
	Content  string `json:"content"`
	SHA256   string `json:"sha256"`
	Mode     string `json:"mode"`
	MIMEType string `json:"mime_type"`
}

func (p piece) data(t testing.TB) []byte {
	t.Helper()
	if p.Encoding != "base64" {
		return []byte(p.Content)
	}
	raw, err := base64.StdEncoding.DecodeString(p.Content)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// uploaded is the structured result of upload.
type uploaded struct {
	Files []struct {
		Path   string
		Bytes  int64
		Size   int64
		SHA256 string `json:"sha256"`
	}
}

func b64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// noise is random bytes that are the same in every run.
func noise(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{'e', '2', 'e'}).Read(out)
	return out
}

func TestBugFS01_UploadsBelongToTheSessionsUser(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	s := a.session(nil)
	a.ok("upload", args{"session_id": s, "path": "/workspace/a.sh", "content": "#!/bin/sh\n", "mode": "0755"})
	out := a.sh(s, `id -u; stat -c %u:%a /workspace/a.sh; echo "# more" >> /workspace/a.sh; tail -n 1 /workspace/a.sh`)
	if lines := strings.Split(out, "\n"); len(lines) != 4 || lines[0] == "0" || lines[1] != lines[0]+":755" || lines[2] != "# more" {
		t.Errorf("%q", out)
	}
}

func TestBugFS02_FilesBelowOtherMountsAreSeenBothWays(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioLegacy)
	s := a.session(nil)
	for _, dir := range []string{"/tmp", "/dev/shm", "/workspace"} {
		a.ok("upload", args{"session_id": s, "path": dir + "/x", "content": "up"})
		if out := a.sh(s, "cat "+dir+"/x"); out != "up" {
			t.Errorf("%s: a command reads %q", dir, out)
		}
		a.sh(s, "echo down > "+dir+"/z")
		if p := into[piece](t, a.ok("download", args{"session_id": s, "path": dir + "/z"})); p.Content != "down\n" {
			t.Errorf("%s: a download reads %q", dir, p.Content)
		}
	}
}

func TestBugFS03_NoPathLeavesTheWorkspace(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s := a.session(nil)
	a.sh(s, "ln -s /tmp out; ln -s /etc/passwd p")
	for _, path := range []string{"../tmp/x", "a/../../tmp/x", "out/x"} {
		a.fails("path_escapes_workspace", "upload", args{"session_id": s, "path": path, "content": "x"})
	}
	for _, path := range []string{"../etc/passwd", "p", "out"} {
		a.fails("path_escapes_workspace", "download", args{"session_id": s, "path": path})
	}
	// Read as text it stays inside, where there is no such file; read as the
	// kernel reads it, it leaves.
	if r := a.do("download", args{"session_id": s, "path": "out/../etc/passwd"}); !r.IsError {
		t.Errorf("out/../etc/passwd: %s", r.text())
	}
	a.fails("permission_denied", "upload", args{"session_id": s, "path": "/etc/x", "content": "x"})
	a.fails("permission_denied", "download", args{"session_id": s, "path": "/etc/shadow"})
	for name, members := range map[string][]tar.Header{
		"dot-dot":       {{Name: "good"}, {Name: "../x"}},
		"absolute":      {{Name: "good"}, {Name: "/tmp/x"}},
		"through links": {{Name: "good"}, {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, {Name: "l/x"}},
	} {
		r := a.do("upload", args{"session_id": s, "path": "in", "content": b64(archive(t, members)), "encoding": "base64", "extract": true})
		if !r.IsError {
			t.Errorf("%s: accepted: %s", name, r.text())
		}
		if out := a.sh(s, "ls in 2>/dev/null; true"); out != "" {
			t.Errorf("%s: part of it is there: %q", name, out)
		}
	}
	if out := a.sh(s, "ls /tmp/x /etc/x x ../x 2>/dev/null; true"); out != "" {
		t.Errorf("outside there is %q", out)
	}
}

// archive makes a tar of members; a regular one holds a little text.
func archive(t testing.TB, members []tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, m := range members {
		text := ""
		if m.Typeflag == 0 || m.Typeflag == tar.TypeReg {
			text = "text"
		}
		m.Size = int64(len(text))
		if m.Mode == 0 {
			m.Mode = 0o644
		}
		if err := w.WriteHeader(&m); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestBugFS04_API08_UploadsOfAnySizeMakeTheirParents(t *testing.T) {
	t.Parallel()
	a := connectPlain(t, sseLegacy)
	s := a.session(nil)
	for _, size := range []int{0, 1, 97_000, 200_000, 8 << 20} {
		data := noise(size)
		path := fmt.Sprintf("/workspace/new%d/deep/f", size)
		r := into[uploaded](t, a.ok("upload", args{"session_id": s, "path": path, "content": b64(data), "encoding": "base64"}))
		if len(r.Files) != 1 || r.Files[0].SHA256 != sum(data) || r.Files[0].Size != int64(size) {
			t.Errorf("%d bytes: %+v", size, r)
		}
		out := a.sh(s, "sha256sum < "+path+"; stat -c %U "+path+" ${"+"PWD}/new"+fmt.Sprint(size)+"; id -un")
		lines := strings.Fields(out)
		if len(lines) != 5 || lines[0] != sum(data) || lines[2] != lines[4] || lines[3] != lines[4] {
			t.Errorf("%d bytes: %q", size, out)
		}
	}
	began := time.Now()
	if r := a.do("upload", args{"session_id": s, "path": "/proc/none/f", "content": b64(noise(1 << 20)), "encoding": "base64"}); !r.IsError || r.code() == "internal" {
		t.Errorf("below /proc: %v %s", r.IsError, r.text())
	}
	took(t, began, 4*time.Second, "an upload below /proc")
	a.fails("too_large", "upload", args{"session_id": s, "path": "big", "content": strings.Repeat("x", 8<<20+1)})
}

// A file of 50 MiB up and down in pieces, while small requests on the same link
// are answered.
func TestBugFS04_FiftyMiBInPiecesBothWaysWhilePingsAreAnswered(t *testing.T) {
	t.Parallel()
	a := connectPlain(t, stdioLegacy)
	s := a.session(nil)
	stop := pulse(t, a, time.Second)
	const total, step = 50 << 20, 1 << 20
	data := noise(total)
	for at := 0; at < total; at += step {
		r := into[uploaded](t, a.ok("upload", args{
			"session_id": s, "path": "big", "content": b64(data[at : at+step]), "encoding": "base64", "append": true, "expected_size": at,
		}))
		if r.Files[0].Size != int64(at+step) {
			t.Fatalf("after the piece at %d: %+v", at, r)
		}
	}
	// A piece that is sent again, because its answer was lost, is refused.
	if r := a.do("upload", args{"session_id": s, "path": "big", "content": "again", "append": true, "expected_size": total - step}); !r.IsError {
		t.Error("a repeated piece was appended")
	}
	if out := a.sh(s, "sha256sum < big"); !strings.HasPrefix(out, sum(data)) {
		t.Errorf("in the session: %s", out)
	}
	down := make([]byte, 0, total)
	last := ""
	for len(down) < total {
		p := into[piece](t, a.ok("download", args{"session_id": s, "path": "big", "offset": len(down), "limit": step}))
		if p.Bytes == 0 || p.Size != total {
			t.Fatalf("at %d: %d bytes of %d", len(down), p.Bytes, p.Size)
		}
		down, last = append(down, p.data(t)...), p.SHA256
	}
	if sum(down) != sum(data) || last != sum(data) {
		t.Errorf("down: %s, told %s, want %s", sum(down), last, sum(data))
	}
	if n, slowest := stop(); n < 5 || slowest > patient(time.Second) {
		t.Errorf("%d pings, the slowest answered after %v", n, slowest)
	}
}

// pulse sends a small request again and again until it is stopped, and tells how
// many were answered and how long the slowest took.
func pulse(t *testing.T, c conn, every time.Duration) (stop func() (int, time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	n, slowest := 0, time.Duration(0)
	go func() {
		defer close(done)
		for tick := time.NewTicker(every); ; {
			began := time.Now()
			if err := c.alive(ctx); err != nil {
				if ctx.Err() == nil {
					t.Errorf("ping: %v", err)
				}
				return
			}
			n, slowest = n+1, max(slowest, time.Since(began))
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
	return func() (int, time.Duration) {
		cancel()
		<-done
		return n, slowest
	}
}

func TestBugFS05_EveryByteValueComesBack(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	s := a.session(nil)
	a.sh(s, `python3 -c 'open("all","wb").write(bytes(range(256)))'`)
	p := into[piece](t, a.ok("download", args{"session_id": s, "path": "all"}))
	want := make([]byte, 256)
	for i := range want {
		want[i] = byte(i)
	}
	if p.Encoding != "base64" || !bytes.Equal(p.data(t), want) || p.SHA256 != sum(want) || p.Size != 256 {
		t.Errorf("%+v", p)
	}
	a.ok("upload", args{"session_id": s, "path": "again", "content": p.Content, "encoding": "base64"})
	a.sh(s, "cmp all again")
	a.ok("upload", args{"session_id": s, "path": "text", "content": "grüße\r\n語"})
	if p := into[piece](t, a.ok("download", args{"session_id": s, "path": "text"})); p.Encoding != "utf-8" || p.Content != "grüße\r\n語" {
		t.Errorf("text: %+v", p)
	}
}
